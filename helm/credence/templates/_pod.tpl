{{- define "credence.secretsPath" -}}/run/secrets/credence{{- end -}}

{{- /* Container settings that the restricted Pod Security level requires. */ -}}
{{- define "credence.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "credence.podSecurity" -}}
runAsNonRoot: true
{{- with .runAs }}
runAsUser: {{ int . }}
runAsGroup: {{ int . }}
fsGroup: {{ int . }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- /* Scheduling settings from `pod`; each key starts on a new line. */ -}}
{{- define "credence.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /*
The spec of a pod. Parameters: root, component, args, secrets (of the role), pod (overrides), resources, config (name
of the ConfigMap) and serviceAccount; for roles also ports (numbers by name) and the settings of the role.
*/ -}}
{{- define "credence.podSpec" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $pod := mergeOverwrite (deepCopy $values.pod) (deepCopy (default dict .pod)) -}}
{{- $secrets := merge (dict) (default dict .secrets) $values.secrets -}}
{{- $selector := include "credence.selector" (dict "root" $root "component" .component) | fromYaml -}}
serviceAccountName: {{ .serviceAccount }}
automountServiceAccountToken: false
# A Service called credence would create variables like CREDENCE_SERVICE_HOST, which are not configuration keys.
enableServiceLinks: false
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- include "credence.podSecurity" $pod | nindent 2 }}
containers:
  - name: credence
    image: {{ include "credence.image" (dict "root" $root "tag" .imageTag) }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args: {{ concat .args (list "--config" "/etc/credence/credence.yaml") | toJson }}
    {{- $quiet := eq .component "scheduler" }}
    {{- if or $secrets .instance $quiet $pod.extraEnv }}
    env:
      {{- range $variable := keys $secrets | sortAlpha }}
      - name: {{ $variable }}
        value: {{ include "credence.secretsPath" $root }}/{{ $variable }}
      {{- end }}
      {{- if $quiet }}
      # The status page of the web role is the one that people open; this one has no login either.
      - name: CREDENCE_HTTP__HOST
        value: 127.0.0.1
      {{- end }}
      {{- if .instance }}
      - name: CREDENCE_KAFKA__INSTANCE_ID
        valueFrom:
          fieldRef:
            fieldPath: metadata.name
      {{- end }}
      {{- with $pod.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- end }}
    {{- with .ports }}
    ports:
      {{- range $name := keys . | sortAlpha }}
      - name: {{ $name }}
        containerPort: {{ index $.ports $name }}
      {{- end }}
    startupProbe:
      httpGet: {path: /healthz, port: monitoring}
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /healthz, port: monitoring}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: /readyz, port: monitoring}
      periodSeconds: 5
      timeoutSeconds: 5
      failureThreshold: 2
    {{- end }}
    {{- with .preStopSeconds }}
    lifecycle:
      preStop:
        exec:
          command: [python, -c, "import time; time.sleep({{ int . }})"]
    {{- end }}
    resources:
      {{- toYaml .resources | nindent 6 }}
    securityContext:
      {{- include "credence.containerSecurity" $root | nindent 6 }}
    volumeMounts:
      - name: config
        mountPath: /etc/credence
        readOnly: true
      {{- if $secrets }}
      - name: secrets
        mountPath: {{ include "credence.secretsPath" $root }}
        readOnly: true
      {{- end }}
      {{- with $pod.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: config
    configMap:
      name: {{ .config }}
  {{- if $secrets }}
  - name: secrets
    projected:
      defaultMode: {{ ternary "0440" "0444" (not (kindIs "invalid" $pod.runAs)) }}
      sources:
        {{- range $variable := keys $secrets | sortAlpha }}
        {{- $from := index $secrets $variable }}
        - secret:
            name: {{ $from.secret }}
            items:
              - key: {{ $from.key | quote }}
                path: {{ $variable }}
        {{- end }}
  {{- end }}
  {{- with $pod.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- include "credence.placement" $pod }}
{{- if .ports }}
{{- $spread := list }}
{{- range $pod.topologySpreadConstraints }}
{{- $spread = append $spread (merge (dict) . (dict "labelSelector" (dict "matchLabels" $selector))) }}
{{- end }}
{{- with $spread }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Annotations of pre-install and pre-upgrade hooks. Parameter: the weight. A failed hook is kept for inspection. */ -}}
{{- define "credence.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
