"""The values of the chart: names, types, defaults and meanings.

`values.yaml`, `values.schema.json` and the chart's README are generated from these models. Kubernetes objects
are passed through unchanged, and have no closer type here.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from helm.workload_values import (
    Consumer,
    Object,
    PodSettings,
    Port,
    Role,
    Secrets,
    Texts,
    Topics,
    Values,
    Web,
    resources_of,
)


class Image(Values):
    """The image of all processes."""

    repository: str = Field(default="credence", description="image repository, without a tag")
    tag: str = Field(default="", description="image tag; default: the chart's `appVersion`")
    digest: str = Field(default="", description="image digest, as `sha256:…`; overrides the tag")
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="image pull policy"
    )
    pull_secrets: list[str] = Field(
        default=[], description="names of Secrets with credentials for the registry"
    )


class Ports(Values):
    """Container ports, also used in the configuration, probes, Services and NetworkPolicies."""

    monitoring: Port = Field(default=8401, description="metrics and health checks of every process")
    http: Port = Field(default=8400, description="the status page and its API")
    vendor_api: Port = Field(default=8402, description="the vendor API")


class Service(Values):
    """The Service."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        default="ClusterIP", description="Service type"
    )
    port: Port = Field(default=80, description="Service port")
    annotations: Texts = Field(default={}, description="annotations of the Service")


class Ingress(Values):
    """The Ingress to the Service."""

    enabled: bool = Field(default=False, description="whether to create an Ingress")
    class_name: str = Field(default="", description="Ingress class; default: the cluster's default class")
    annotations: Texts = Field(
        default={}, description="annotations of the Ingress, such as for authentication"
    )
    hosts: list[str] = Field(default=[], description="host names; every path goes to Credence")
    tls: list[Object] = Field(default=[], description="TLS certificates, each with `secretName` and `hosts`")


class Page(Values):
    """The status page. It has no authentication: add it at the Ingress or a proxy."""

    service: Service = Service()
    ingress: Ingress = Ingress()


class VendorApi(Values):
    """The vendor API, for vendors in `config.vendors` that have tokens, and for `config.senders`."""

    enabled: bool = Field(default=False, description="whether the web processes serve the vendor API")
    service: Service = Service()
    ingress: Ingress = Ingress()


class Peers(Values):
    """Allowed clients of a port."""

    from_: list[Object] = Field(
        default=[], alias="from", description="NetworkPolicyPeers; empty denies all clients"
    )


def _peers(*peers: Object) -> Peers:
    return Peers.model_validate({"from": peers})


class Server(Values):
    """A server that pods can connect to."""

    ports: list[Port] = Field(default=[], description="port numbers")
    to: list[Object] = Field(default=[], description="NetworkPolicyPeers; empty allows any destination")


class NetworkPolicy(Values):
    """Allowed clients and destinations of the pods. All other traffic is denied."""

    enabled: bool = Field(default=True, description="whether to create NetworkPolicies")
    monitoring: Peers = Field(
        default=_peers({"namespaceSelector": {}}),
        description="allowed clients of the metrics; default: every pod in the cluster",
    )
    http: Peers = Field(
        default=_peers({"podSelector": {}}),
        description="allowed clients of the status page; default: its namespace. Add your Ingress controller",
    )
    vendor_api: Peers = Field(
        default=Peers(), description="allowed clients of the vendor API; add your Ingress controller"
    )
    dns: Server = Field(default=Server(ports=[53]), description="DNS servers, over UDP and TCP")
    kafka: Server = Field(
        default=Server(),
        description="all Kafka brokers; default ports: those in `config.kafka.bootstrap_servers`",
    )
    redis: Server = Field(
        default=Server(),
        description="Redis, or all nodes of a cluster; default port: that in `config.redis.url`, or 6379",
    )
    extra_egress: list[Object] = Field(
        default=[], description="additional NetworkPolicyEgressRules, such as for an OAuth token endpoint"
    )


class ServiceMonitor(Values):
    """A ServiceMonitor for the Prometheus Operator."""

    enabled: bool = Field(default=False, description="whether to create a ServiceMonitor")
    additional_labels: Texts = Field(default={}, description="labels that your Prometheus selects")
    interval: str = Field(default="15s", description="scrape interval")
    scrape_timeout: str = Field(default="10s", description="scrape timeout")


class Rules(Values):
    """PrometheusRules for the Prometheus Operator: the rules and alerts in `deploy/prometheus`."""

    enabled: bool = Field(default=False, description="whether to create PrometheusRules")
    additional_labels: Texts = Field(default={}, description="labels that your Prometheus selects")
    page_url: str = Field(
        default="https://credence.example",
        description="URL of the status page and runbooks, for links in alerts",
    )
    grafana_url: str = Field(
        default="https://grafana.example", description="URL of Grafana, for links in alerts"
    )


class Dashboards(Values):
    """ConfigMaps for Grafana's sidecar: the dashboards in `deploy/grafana`."""

    enabled: bool = Field(default=False, description="whether to create the ConfigMaps")
    additional_labels: Texts = Field(
        default={"grafana_dashboard": "1"}, description="labels that the sidecar selects"
    )
    annotations: Texts = Field(default={}, description="annotations, such as the folder")


class Monitoring(Values):
    """Integration with Prometheus and Grafana."""

    service_monitor: ServiceMonitor = ServiceMonitor()
    rules: Rules = Rules()
    dashboards: Dashboards = Dashboards()


class ServiceAccount(Values):
    """The ServiceAccount of the pods. They do not use the Kubernetes API, and no token is mounted."""

    create: bool = Field(default=True, description="whether to create the ServiceAccount")
    name: str = Field(
        default="", description="name of the ServiceAccount; default: the full name of the release"
    )
    annotations: Texts = Field(default={}, description="annotations of the ServiceAccount")


class ChartValues(Values):
    """All values of the chart."""

    name_override: str = Field(default="", description="replaces the chart's name in object names")
    fullname_override: str = Field(default="", description="replaces the prefix of all object names")
    image: Image = Image()
    config: Object = Field(
        default={"models": {}},
        description="the configuration, as described in docs/configuration.md, without secrets; the chart "
        "sets hosts and ports of listeners",
    )
    secrets: Secrets = Field(
        default={},
        description="references to Secrets, by environment variable that ends with `_FILE`; the chart "
        "mounts the key as a file",
    )
    ports: Ports = Ports()
    listen_address: str = Field(default="0.0.0.0", description="address to listen on; use `::` without IPv4")  # noqa: S104 - NetworkPolicies restrict the clients
    predictions: Consumer = Field(default=Consumer(), description="consumers of predictions")
    labels: Consumer = Field(
        default=Consumer(resources=resources_of("100m", "256Mi", "512Mi")), description="consumers of labels"
    )
    scheduler: Role = Field(
        default=Role(),
        description="processes that compute estimates and request labels; one of them is the leader",
    )
    web: Web = Web()
    page: Page = Page()
    vendor_api: VendorApi = VendorApi()
    topics: Topics = Topics()
    pod: PodSettings = PodSettings()
    service_account: ServiceAccount = ServiceAccount()
    network_policy: NetworkPolicy = NetworkPolicy()
    monitoring: Monitoring = Monitoring()
