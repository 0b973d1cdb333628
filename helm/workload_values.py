"""The values of the chart's workloads: replicas, resources, rollout and placement of each role."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Object = dict[str, Any]
Texts = dict[str, str]
Port = Annotated[int, Field(ge=1, le=65_535)]
Seconds = Annotated[int, Field(ge=0)]

FILE_VARIABLE = r"^CREDENCE_[A-Z0-9_-]+_FILE$"
"""Variables that name a file; the chart mounts the key of a Secret there."""

NOBODY = 65_532
"""User and group of the image; no process of a node has it."""


class Values(BaseModel):
    """A section of the values. Unknown keys are errors: a misspelt key would silently have no effect."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class SecretKey(Values):
    """One key of an existing Secret."""

    secret: str = Field(min_length=1, description="name of the Secret")
    key: str = Field(min_length=1, description="key in the Secret")


Secrets = dict[Annotated[str, Field(pattern=FILE_VARIABLE)], SecretKey]


class Disruption(Values):
    """PodDisruptionBudget of the role, for when nodes are drained."""

    enabled: bool = Field(default=True, description="whether to create a PodDisruptionBudget")
    max_unavailable: int | str = Field(
        default=1, description="maximum number of unavailable pods, or a percentage such as `50%`"
    )


class Rollout(Values):
    """Rolling update; a StatefulSet uses only `minReadySeconds`."""

    max_surge: int | str = Field(
        default=1, description="maximum number of pods above `replicas` during an update"
    )
    max_unavailable: int | str = Field(
        default=0, description="maximum number of pods below `replicas` during an update"
    )
    min_ready_seconds: Seconds = Field(
        default=20,
        description="time that a pod must be ready before the next one is replaced; longer than a scrape "
        "interval, so that metrics have no gap",
    )


class Hpa(Values):
    """Metrics of the HorizontalPodAutoscaler."""

    metric: str = Field(
        default="credence_consumer_lag_records",
        description="pod metric from an adapter such as prometheus-adapter, summed over partitions",
    )
    cpu_utilization: int | None = Field(
        default=None,
        ge=1,
        description="target CPU utilization in percent of the request; default: CPU is not used",
    )


class Keda(Values):
    """The Kafka trigger of KEDA."""

    polling_interval_seconds: Seconds = Field(default=30, description="polling interval")
    authentication_ref: str = Field(
        default="", description="name of a TriggerAuthentication with Kafka credentials"
    )
    metadata: Texts = Field(
        default={}, description="additional metadata of the Kafka trigger, such as `sasl` and `tls`"
    )


class Autoscaling(Values):
    """Autoscaling by consumer lag."""

    by: Literal["none", "hpa", "keda"] = Field(
        default="none",
        description="`none` keeps `replicas`, `hpa` creates a HorizontalPodAutoscaler, `keda` a ScaledObject",
    )
    min_replicas: int = Field(default=1, ge=1, description="minimum number of replicas")
    max_replicas: int | None = Field(
        default=None,
        ge=1,
        description="maximum number of replicas; default and upper limit: `config.kafka.partitions`",
    )
    lag_per_replica: int = Field(
        default=20_000, ge=1, description="target consumer lag per replica, in records"
    )
    scale_down_seconds: Seconds = Field(
        default=600,
        le=3_600,
        description="stabilization window before scaling down, because every change reassigns partitions",
    )
    hpa: Hpa = Field(default=Hpa(), description="settings for `by: hpa`")
    keda: Keda = Field(default=Keda(), description="settings for `by: keda`")


class PodSettings(Values):
    """Settings of all pods."""

    annotations: Texts = Field(default={}, description="annotations of the pods")
    labels: Texts = Field(default={}, description="labels of the pods")
    node_selector: Texts = Field(default={}, description="node selector")
    tolerations: list[Object] = Field(default=[], description="tolerations")
    affinity: Object = Field(default={}, description="node and pod affinity")
    topology_spread_constraints: list[Object] = Field(
        default=[
            {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
            for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ],
        description="topology spread of the pods of each role; the chart adds `labelSelector`",
    )
    priority_class_name: str = Field(default="", description="priority class")
    run_as: int | None = Field(
        default=NOBODY,
        ge=1,
        description="user and group ID; null lets the platform choose, as OpenShift requires",
    )
    extra_env: list[Object] = Field(
        default=[],
        description="additional environment variables; set those of Credence in `config` and `secrets`",
    )
    extra_volumes: list[Object] = Field(
        default=[], description="additional volumes, such as a Secret with a file of gold items"
    )
    extra_volume_mounts: list[Object] = Field(default=[], description="mounts of the additional volumes")


def resources_of(cpu: str, memory: str, limit: str) -> Object:
    """Resource requests of a container, and its memory limit."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}}


class Role(Values):
    """One role, with its own workload."""

    replicas: int = Field(default=2, ge=0, description="number of pods")
    image_tag: str = Field(default="", description="image tag for this role only, to upgrade role by role")
    resources: Object = Field(
        default=resources_of("250m", "320Mi", "768Mi"),
        description="resources of one pod; a CPU limit would only slow down catching up with a backlog",
    )
    rollout: Rollout = Rollout()
    termination_grace_period_seconds: Seconds = Field(
        default=60,
        description="termination grace period; a process takes up to 45 s to store its data",
    )
    disruption: Disruption = Disruption()
    secrets: Secrets = Field(
        default={},
        description="like `secrets` above, for this role only; overrides them by variable",
    )
    pod: Object = Field(default={}, description="overrides of `pod` for this role")


class Consumer(Role):
    """A role that consumes a topic; replicas beyond the number of partitions are idle."""

    kind: Literal["Deployment", "StatefulSet"] = Field(
        default="Deployment",
        description="kind of workload; in a StatefulSet partitions are not reassigned while a pod restarts, "
        "because `kafka.instance_id` is the pod's name",
    )
    resources: Object = Field(
        default=resources_of("500m", "384Mi", "1Gi"),
        description="resources of one pod, which uses at most one core; a CPU limit would only slow down "
        "catching up with a backlog",
    )
    rollout: Rollout = Field(
        default=Rollout(max_surge=0, max_unavailable=1),
        description="rolling update, pod by pod, so that no partition moves to a pod that is replaced next. "
        "A StatefulSet uses only `minReadySeconds`",
    )
    autoscaling: Autoscaling = Autoscaling()


class Web(Role):
    """Status page and vendor API."""

    pre_stop_seconds: Seconds = Field(
        default=5,
        description="time that a terminating pod still answers, until it is removed from all Services",
    )


class Topics(Values):
    """A hook job that creates missing topics and tests the configuration before install and upgrade."""

    create: bool = Field(default=True, description="whether to run the job")
    resources: Object = Field(
        default=resources_of("100m", "192Mi", "384Mi"), description="resources of the job"
    )
    deadline_seconds: Seconds = Field(default=300, ge=1, description="deadline of the job")
    secrets: Secrets = Field(
        default={},
        description="like `secrets`, for this job only, for example credentials that can create topics",
    )
