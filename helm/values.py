"""The values of the chart: names, types, defaults and meanings.

`values.yaml`, `values.schema.json` and the chart's README are made from these models. What Kubernetes defines
itself is passed on as it is, and has no closer type here.
"""

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


class Image(Values):
    """The image of all processes."""

    repository: str = Field(default="credence", description="where the image is, without a tag")
    tag: str = Field(default="", description="the chart's `appVersion` if empty")
    digest: str = Field(default="", description="as `sha256:…`; outranks the tag")
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="when the image is pulled"
    )
    pull_secrets: list[str] = Field(default=[], description="names of Secrets with a login for the registry")


class SecretKey(Values):
    """One key of a Secret that is there already."""

    secret: str = Field(min_length=1, description="name of the Secret")
    key: str = Field(min_length=1, description="key in it")


Secrets = dict[Annotated[str, Field(pattern=FILE_VARIABLE)], SecretKey]


class Ports(Values):
    """Ports of the containers; configuration, probes, Services and policies all follow them."""

    monitoring: Port = Field(default=8401, description="metrics and health, of every process")
    http: Port = Field(default=8400, description="the status page and its API")
    vendor_api: Port = Field(default=8402, description="the API of labelling vendors")


class Disruption(Values):
    """How many processes of a role may be away at a time when nodes are drained."""

    enabled: bool = Field(default=True, description="whether there is a PodDisruptionBudget")
    max_unavailable: int | str = Field(default=1, description="a number, or a share such as `50%`")


class Rollout(Values):
    """How a Deployment goes from one version to the next."""

    max_surge: int | str = Field(default=1, description="pods above `replicas` meanwhile")
    max_unavailable: int | str = Field(default=0, description="pods below `replicas` meanwhile")


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


def _resources(cpu: str, memory: str, limit: str) -> Object:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}}


class Role(Values):
    """One role: a workload of its own."""

    replicas: int = Field(default=2, ge=0, description="how many processes")
    resources: Object = Field(
        default=_resources("250m", "320Mi", "768Mi"),
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
        default=_resources("500m", "384Mi", "1Gi"),
        description="of one process, which uses one core at most; a CPU limit would only slow catching up",
    )
    rollout: Rollout = Field(
        default=Rollout(max_surge=0, max_unavailable=1),
        description="of a Deployment; one after the other: no partition moves to a pod that leaves next",
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
    resources: Object = Field(default=_resources("100m", "192Mi", "384Mi"), description="of the job")
    deadline_seconds: Seconds = Field(default=300, ge=1, description="the job fails after so long")
    secrets: Secrets = Field(
        default={},
        description="like `secrets`, for this job alone: it may create topics, and others need not",
    )


class Service(Values):
    """A Service."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        default="ClusterIP", description="its type"
    )
    port: Port = Field(default=80, description="its port")
    annotations: Texts = Field(default={}, description="of the Service")


class Ingress(Values):
    """An Ingress to a Service."""

    enabled: bool = Field(default=False, description="whether there is one")
    class_name: str = Field(default="", description="the cluster's default if empty")
    annotations: Texts = Field(default={}, description="of the Ingress, such as who is let in")
    hosts: list[str] = Field(default=[], description="names that it answers to; all paths are Credence's")
    tls: list[Object] = Field(default=[], description="certificates: `secretName` and `hosts`")


class Page(Values):
    """The status page. It asks nobody who he is: an Ingress needs somebody in front who does."""

    service: Service = Service()
    ingress: Ingress = Ingress()


class VendorApi(Values):
    """The API of labelling vendors, for vendors of `config.vendors` that have tokens."""

    enabled: bool = Field(default=False, description="whether the web processes serve it")
    service: Service = Service()
    ingress: Ingress = Ingress()


class Peers(Values):
    """Who may reach a port."""

    from_: list[Object] = Field(
        default=[], alias="from", description="NetworkPolicyPeers; nobody where there is none"
    )


def _peers(*peers: Object) -> Peers:
    return Peers.model_validate({"from": peers})


class Server(Values):
    """A server that pods may reach."""

    ports: list[Port] = Field(default=[], description="its ports")
    to: list[Object] = Field(default=[], description="NetworkPolicyPeers; anywhere where there is none")


class NetworkPolicy(Values):
    """Who may reach the pods, and whom they may reach. All else is closed."""

    enabled: bool = Field(default=True, description="whether there are NetworkPolicies")
    monitoring: Peers = Field(
        default=_peers({"namespaceSelector": {}}),
        description="who may reach metrics; every pod of the cluster by default",
    )
    http: Peers = Field(
        default=_peers({"podSelector": {}}),
        description="who may reach the page; pods of its namespace by default, so name the Ingress's",
    )
    vendor_api: Peers = Field(
        default=Peers(), description="who may reach the API of vendors; name the Ingress's"
    )
    dns: Server = Field(default=Server(ports=[53]), description="where names are looked up, by UDP and TCP")
    kafka: Server = Field(
        default=Server(),
        description="the brokers, all of them; without ports those of `config.kafka.bootstrap_servers`",
    )
    redis: Server = Field(default=Server(ports=[6379]), description="Redis, and all nodes of a cluster")
    extra_egress: list[Object] = Field(
        default=[], description="more NetworkPolicyEgressRules, such as to where tokens are got"
    )


class ServiceMonitor(Values):
    """For the Prometheus Operator: which pods are scraped."""

    enabled: bool = Field(default=False, description="whether there is a ServiceMonitor")
    additional_labels: Texts = Field(default={}, description="by which Prometheus chooses it")
    interval: str = Field(default="15s", description="time between two scrapes")
    scrape_timeout: str = Field(default="10s", description="for one scrape")


class Rules(Values):
    """For the Prometheus Operator: recording rules and alerts, those of `deploy/prometheus`."""

    enabled: bool = Field(default=False, description="whether there are PrometheusRules")
    additional_labels: Texts = Field(default={}, description="by which Prometheus chooses them")
    page_url: str = Field(
        default="https://credence.example", description="where links to the page and its runbooks lead"
    )
    grafana_url: str = Field(
        default="https://grafana.example", description="where links to the dashboards lead"
    )


class Dashboards(Values):
    """For Grafana's sidecar: the dashboards of `deploy/grafana`."""

    enabled: bool = Field(default=False, description="whether there are ConfigMaps of them")
    additional_labels: Texts = Field(
        default={"grafana_dashboard": "1"}, description="by which the sidecar finds them"
    )
    annotations: Texts = Field(default={}, description="such as the folder")


class Monitoring(Values):
    """What Prometheus and Grafana are told."""

    service_monitor: ServiceMonitor = ServiceMonitor()
    rules: Rules = Rules()
    dashboards: Dashboards = Dashboards()


class ServiceAccount(Values):
    """Who the pods are. They never talk to Kubernetes, and get no token for it."""

    create: bool = Field(default=True, description="whether the chart makes it")
    name: str = Field(default="", description="its name; the release's if empty")
    annotations: Texts = Field(default={}, description="of the ServiceAccount")


class ChartValues(Values):
    """All values of the chart."""

    name_override: str = Field(default="", description="the chart's name in the names of objects")
    fullname_override: str = Field(default="", description="the beginning of the names of objects")
    image: Image = Image()
    config: Object = Field(
        default={"models": {}},
        description="the configuration, as docs/configuration.md tells it, without secrets; the chart "
        "sets where listeners listen",
    )
    secrets: Secrets = Field(
        default={},
        description="secrets by reference alone: a variable that ends with `_FILE`, and the key of a "
        "Secret, which is mounted there",
    )
    ports: Ports = Ports()
    listen_address: str = Field(default="0.0.0.0", description="in the pods; `::` where there is no IPv4")  # noqa: S104 - NetworkPolicies say who may come
    predictions: Consumer = Field(default=Consumer(), description="consumers of predictions")
    labels: Consumer = Field(
        default=Consumer(resources=_resources("100m", "256Mi", "512Mi")), description="consumers of labels"
    )
    scheduler: Role = Field(default=Role(), description="rounds and label requests; one of them leads")
    web: Web = Web()
    page: Page = Page()
    vendor_api: VendorApi = VendorApi()
    topics: Topics = Topics()
    pod: PodSettings = PodSettings()
    service_account: ServiceAccount = ServiceAccount()
    network_policy: NetworkPolicy = NetworkPolicy()
    monitoring: Monitoring = Monitoring()
