"""The values of the chart's workloads: where and how the pods of a role run, and how many."""

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
    """A part of the values. Takes no unknown keys: a misspelt one would silently not hold."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class SecretKey(Values):
    """One key of a Secret that is there already."""

    secret: str = Field(min_length=1, description="name of the Secret")
    key: str = Field(min_length=1, description="key in it")


Secrets = dict[Annotated[str, Field(pattern=FILE_VARIABLE)], SecretKey]


class Disruption(Values):
    """How many processes of a role may be away at a time when nodes are drained."""

    enabled: bool = Field(default=True, description="whether there is a PodDisruptionBudget")
    max_unavailable: int | str = Field(default=1, description="a number, or a share such as `50%`")


class Rollout(Values):
    """How a workload goes from one version to the next; a StatefulSet takes `minReadySeconds` alone."""

    max_surge: int | str = Field(default=1, description="pods above `replicas` meanwhile")
    max_unavailable: int | str = Field(default=0, description="pods below `replicas` meanwhile")
    min_ready_seconds: Seconds = Field(
        default=20,
        description="a pod must be ready for so long before the next one goes; longer than a scrape "
        "interval, so that no metric is ever away",
    )


class Hpa(Values):
    """What a HorizontalPodAutoscaler looks at."""

    metric: str = Field(
        default="credence_consumer_lag_records",
        description="a metric of pods, summed over partitions, of an adapter such as prometheus-adapter",
    )
    cpu_utilization: int | None = Field(
        default=None, ge=1, description="percent of the CPU request, looked at too if given"
    )


class Keda(Values):
    """How KEDA asks Kafka for the lag."""

    polling_interval_seconds: Seconds = Field(default=30, description="time between two looks")
    authentication_ref: str = Field(default="", description="name of a TriggerAuthentication with the login")
    metadata: Texts = Field(
        default={}, description="more of the Kafka trigger's metadata, such as `sasl` and `tls`"
    )


class Autoscaling(Values):
    """Replicas by consumer lag."""

    by: Literal["none", "hpa", "keda"] = Field(
        default="none",
        description="`replicas` as they are, a HorizontalPodAutoscaler, or a KEDA ScaledObject",
    )
    min_replicas: int = Field(default=1, ge=1, description="never fewer")
    max_replicas: int | None = Field(
        default=None, ge=1, description="never more; `config.kafka.partitions` if absent, and at the most"
    )
    lag_per_replica: int = Field(default=20_000, ge=1, description="records behind that one replica may have")
    scale_down_seconds: Seconds = Field(
        default=600,
        le=3_600,
        description="how long fewer must be enough before one goes: every change moves partitions",
    )
    hpa: Hpa = Field(default=Hpa(), description="with `by: hpa`")
    keda: Keda = Field(default=Keda(), description="with `by: keda`")


class PodSettings(Values):
    """Where and how pods run."""

    annotations: Texts = Field(default={}, description="of the pods")
    labels: Texts = Field(default={}, description="of the pods")
    node_selector: Texts = Field(default={}, description="labels that their nodes must have")
    tolerations: list[Object] = Field(default=[], description="taints that they bear")
    affinity: Object = Field(default={}, description="to nodes and to other pods")
    topology_spread_constraints: list[Object] = Field(
        default=[
            {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
            for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ],
        description="how the pods of one role spread; the chart adds the `labelSelector` where there is none",
    )
    priority_class_name: str = Field(default="", description="which pods go first when nodes are full")
    run_as: int | None = Field(
        default=NOBODY,
        ge=1,
        description="number of user and group; null leaves them to the platform, as OpenShift wants it",
    )
    extra_env: list[Object] = Field(
        default=[], description="more variables; those of Credence stand in `config` and `secrets`"
    )
    extra_volumes: list[Object] = Field(default=[], description="more volumes, such as a projected token")
    extra_volume_mounts: list[Object] = Field(default=[], description="where the container finds them")


def resources_of(cpu: str, memory: str, limit: str) -> Object:
    """What a container asks for, and the most memory that it may take."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}}


class Role(Values):
    """One role: a workload of its own."""

    replicas: int = Field(default=2, ge=0, description="how many processes")
    image_tag: str = Field(
        default="", description="another version than `image`, to upgrade one role after the other"
    )
    resources: Object = Field(
        default=resources_of("250m", "320Mi", "768Mi"),
        description="of one process; a CPU limit would only slow catching up",
    )
    rollout: Rollout = Rollout()
    termination_grace_period_seconds: Seconds = Field(
        default=60, description="a process needs up to 45 s to store what it holds when Kafka is slow"
    )
    disruption: Disruption = Disruption()
    secrets: Secrets = Field(
        default={},
        description="like `secrets` above, for this role alone; outranks them, variable by variable",
    )
    pod: Object = Field(default={}, description="keys of `pod` that differ for this role")


class Consumer(Role):
    """A role that reads a topic; as many replicas as the topic has partitions share the work."""

    kind: Literal["Deployment", "StatefulSet"] = Field(
        default="Deployment",
        description="with a StatefulSet partitions wait for a pod that restarts, and do not move: "
        "`kafka.instance_id` is the pod's name",
    )
    resources: Object = Field(
        default=resources_of("500m", "384Mi", "1Gi"),
        description="of one process, which uses one core at most; a CPU limit would only slow catching up",
    )
    rollout: Rollout = Field(
        default=Rollout(max_surge=0, max_unavailable=1),
        description="one after the other: no partition moves to a pod that leaves next. A StatefulSet takes "
        "`minReadySeconds` alone",
    )
    autoscaling: Autoscaling = Autoscaling()


class Web(Role):
    """Status page and vendor API."""

    pre_stop_seconds: Seconds = Field(
        default=5, description="a pod that ends answers so long still, until no Service names it any more"
    )


class Topics(Values):
    """A job that creates missing topics before install and upgrade, and so tries the configuration first."""

    create: bool = Field(default=True, description="whether there is one")
    resources: Object = Field(default=resources_of("100m", "192Mi", "384Mi"), description="of the job")
    deadline_seconds: Seconds = Field(default=300, ge=1, description="the job fails after so long")
    secrets: Secrets = Field(
        default={},
        description="like `secrets`, for this job alone: it may create topics, and others need not",
    )
