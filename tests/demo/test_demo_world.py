from __future__ import annotations

import inspect

import numpy as np
import pytest

from service.demo import labeller
from service.demo.producer import Classifier
from service.demo.world import CLASSES, DEGRADED_CAMERA, World, item_id, item_number, load_split

NUMBERS = range(5_000, 6_500)


@pytest.fixture(scope="module")
def world() -> World:
    return World(1, load_split(1))


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    digits = load_split(1)
    return Classifier(digits.training_images, digits.training_classes)


def accuracy(world: World, classifier: Classifier, camera: str, *, degraded: bool) -> float:
    predicted = classifier.predict(world.pixels(NUMBERS, degraded=degraded)).predicted
    truth = np.array([CLASSES.index(world.true_class(number)) for number in NUMBERS])
    here = np.array(world.cameras(NUMBERS)) == camera
    return float((predicted == truth)[here].mean())


def test_the_classifier_is_good_but_not_perfect_on_clean_held_out_images(classifier: Classifier) -> None:
    digits = load_split(1)
    correct = classifier.predict(digits.images).predicted == digits.classes
    assert 0.93 < correct.mean() < 0.995


def test_the_degraded_camera_is_really_less_accurate_and_the_other_one_is_untouched(
    world: World, classifier: Classifier
) -> None:
    assert accuracy(world, classifier, DEGRADED_CAMERA, degraded=False) > 0.9
    assert accuracy(world, classifier, DEGRADED_CAMERA, degraded=True) < 0.75
    assert accuracy(world, classifier, "gate", degraded=True) == accuracy(
        world, classifier, "gate", degraded=False
    )


def test_a_quarter_of_the_items_comes_from_the_camera_that_degrades(world: World) -> None:
    # 1,500 draws: a standard error of 1.1 points.
    assert np.mean([camera == DEGRADED_CAMERA for camera in world.cameras(NUMBERS)]) == pytest.approx(
        0.25, abs=0.05
    )


def test_no_two_items_show_the_same_pixels_though_images_repeat(world: World) -> None:
    pixels = world.pixels(NUMBERS, degraded=False).reshape(len(NUMBERS), -1)
    assert len(np.unique(pixels, axis=0)) == len(NUMBERS)
    assert pixels.min() >= 0
    assert pixels.max() <= 16


def test_two_processes_agree_on_the_truth_without_talking(world: World) -> None:
    other = World(1, load_split(1))
    assert [other.true_class(n) for n in reversed(NUMBERS)] == [
        world.true_class(n) for n in reversed(NUMBERS)
    ]
    assert other.cameras(NUMBERS) == world.cameras(NUMBERS)


def test_another_seed_makes_another_world(world: World) -> None:
    other = World(2, load_split(2))
    assert [other.true_class(n) for n in NUMBERS] != [world.true_class(n) for n in NUMBERS]


def test_the_truth_is_a_function_of_the_item_number_alone(world: World) -> None:
    assert list(inspect.signature(world.true_class).parameters) == ["number"]
    before = [world.true_class(n) for n in NUMBERS]
    world.pixels(NUMBERS, degraded=True)
    assert [world.true_class(n) for n in NUMBERS] == before


def test_the_labeller_knows_no_classifier() -> None:
    assert "classifier" not in inspect.getsource(labeller)


def test_item_ids_lead_back_to_numbers() -> None:
    assert item_id(123) == "img-000123"
    assert item_number(item_id(1_234_567)) == 1_234_567


def test_neighbouring_numbers_do_not_reveal_the_class(world: World) -> None:
    truth = np.array([int(world.true_class(n)) for n in NUMBERS])
    # Independent classes agree in a tenth of the pairs; 1,499 of them have a standard error of 0.8 points.
    assert np.mean(truth[1:] == truth[:-1]) == pytest.approx(0.1, abs=0.04)
