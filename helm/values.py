"""The values of the chart: names, types, defaults and meanings.

`values.yaml`, `values.schema.json` and the chart's README are made from these models. What Kubernetes defines
itself is passed on as it is, and has no closer type here.
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

    repository: str = Field(default="credence", description="where the image is, without a tag")
    tag: str = Field(default="", description="the chart's `appVersion` if empty")
    digest: str = Field(default="", description="as `sha256:…`; outranks the tag")
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="when the image is pulled"
    )
    pull_secrets: list[str] = Field(default=[], description="names of Secrets with a login for the registry")


class Ports(Values):
    """Ports of the containers; configuration, probes, Services and policies all follow them."""

    monitoring: Port = Field(default=8401, description="metrics and health, of every process")
    http: Port = Field(default=8400, description="the status page and its API")
    vendor_api: Port = Field(default=8402, description="the API of labelling vendors")


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
    """Who may reach the pods, and what they may reach. All else is closed."""

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
    redis: Server = Field(
        default=Server(),
        description="Redis, and all nodes of a cluster; without ports that of `config.redis.url`, else 6379",
    )
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
    """What Prometheus and Grafana get."""

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
        default=Consumer(resources=resources_of("100m", "256Mi", "512Mi")), description="consumers of labels"
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
