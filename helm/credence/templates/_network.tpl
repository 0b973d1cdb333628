{{- /* Egress rules for the given servers of `networkPolicy`, and `extraEgress`. */ -}}
{{- define "credence.egress" -}}
{{- $policy := .root.Values.networkPolicy -}}
{{- $rules := list -}}
{{- range $name := .servers -}}
{{- $server := index $policy $name -}}
{{- $numbers := $server.ports -}}
{{- if and (eq $name "kafka") (not $numbers) -}}
{{- range (include "credence.kafka" $.root | fromYaml).bootstrap_servers -}}
{{- $numbers = append $numbers (regexFind "[0-9]+$" . | atoi) | uniq -}}
{{- end -}}
{{- end -}}
{{- if and (eq $name "redis") (not $numbers) -}}
{{- $host := get (urlParse (default "" (default dict $.root.Values.config.redis).url)) "host" -}}
{{- $numbers = list (regexFind ":[0-9]+$" $host | trimPrefix ":" | default "6379" | atoi) -}}
{{- end -}}
{{- $ports := list -}}
{{- range $numbers -}}
{{- $ports = append $ports (dict "port" (int .) "protocol" "TCP") -}}
{{- if eq $name "dns" -}}
{{- $ports = append $ports (dict "port" (int .) "protocol" "UDP") -}}
{{- end -}}
{{- end -}}
{{- $rule := dict "ports" $ports -}}
{{- if $server.to -}}
{{- $rule = set $rule "to" $server.to -}}
{{- end -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- concat $rules $policy.extraEgress | toYaml -}}
{{- end -}}
