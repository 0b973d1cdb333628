{{- /*
The configuration, with the keys that the chart sets. Written as JSON, which is unambiguous YAML: Helm's YAML omits
some quotation marks that the parser needs.
*/ -}}
{{- define "credence.config" -}}
{{- $host := .Values.listenAddress -}}
{{- $ports := .Values.ports -}}
{{- $set := dict
  "monitoring" (dict "host" $host "port" (int $ports.monitoring))
  "http" (dict "host" $host "port" (int $ports.http)) -}}
{{- if .Values.vendorApi.enabled -}}
{{- $set = set $set "vendor_api" (dict "host" $host "port" (int $ports.vendorApi)) -}}
{{- end -}}
{{- mergeOverwrite (deepCopy .Values.config) $set | toPrettyJson -}}
{{- end -}}

{{- /* The Kafka configuration, with defaults for the keys that templates read. */ -}}
{{- define "credence.kafka" -}}
{{- $defaults := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- mergeOverwrite $defaults.kafka (deepCopy .Values.config.kafka) | toYaml -}}
{{- end -}}

{{- /* Validation that a JSON Schema cannot express. */ -}}
{{- define "credence.check" -}}
{{- $values := .Values -}}
{{- $redis := default dict $values.config.redis -}}
{{- range $vendor := keys (default dict $values.config.vendors) | sortAlpha -}}
{{- $variable := printf "CREDENCE_VENDORS__%s__LABEL_KEYS_FILE" (upper $vendor) -}}
{{- if not (hasKey $values.secrets $variable) -}}
{{- fail (printf "vendor %s has no label keys: set secrets.%s" $vendor $variable) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "predictions" "labels" "scheduler" "web" -}}
{{- $secrets := merge (dict) (index $values $name).secrets $values.secrets -}}
{{- if not (or $redis.url (hasKey $secrets "CREDENCE_REDIS__URL_FILE")) -}}
{{- fail (printf "%s has no Redis URL: set config.redis.url, or secrets.CREDENCE_REDIS__URL_FILE if the URL contains a password" $name) -}}
{{- end -}}
{{- end -}}
{{- $kafka := include "credence.kafka" . | fromYaml -}}
{{- range $name := list "predictions" "labels" -}}
{{- $most := (index $values $name).autoscaling.maxReplicas -}}
{{- if and $most (gt (int $most) (int $kafka.partitions)) -}}
{{- fail (printf "%s.autoscaling.maxReplicas: %d exceeds config.kafka.partitions (%d): the remaining replicas would be idle" $name (int $most) (int $kafka.partitions)) -}}
{{- end -}}
{{- end -}}
{{- if $values.vendorApi.enabled -}}
{{- $tokens := list -}}
{{- range $vendor := default dict $values.config.vendors -}}
{{- $tokens = concat $tokens (default list $vendor.token_sha256) -}}
{{- end -}}
{{- if and (not $tokens) (not $values.config.senders) -}}
{{- fail "vendorApi.enabled requires a vendor with token_sha256 in config.vendors, or config.senders" -}}
{{- end -}}
{{- end -}}
{{- range $key, $ingress := dict "page.ingress" $values.page.ingress "vendorApi.ingress" $values.vendorApi.ingress -}}
{{- if and $ingress.enabled (not $ingress.hosts) -}}
{{- fail (printf "%s.hosts is required: an Ingress without a host would match every host name" $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
