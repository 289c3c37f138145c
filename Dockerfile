# docker build --tag couchdb-sidecar .          docs/designs/image.md says why it is as it is
ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY ddocs ddocs
COPY sidecar sidecar
RUN npm run build
# Leaves what runs beside a CouchDB. Not --omit=optional: the binary of esbuild is an optional dependency of esbuild.
RUN npm pkg delete devDependencies workspaces scripts.prepare \
 && npm prune --ignore-scripts --no-audit --no-fund \
 && find node_modules -type d -empty -delete

FROM node:${NODE_VERSION}-bookworm-slim
LABEL org.opencontainers.image.title="couchdb-sidecar" \
      org.opencontainers.image.description="A process beside CouchDB that makes documents do things" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# The name and the command, for handlers in any folder (import … from 'couchdb-sidecar') and for `docker exec`.
RUN mkdir /node_modules \
 && ln -s /app /node_modules/couchdb-sidecar \
 && ln -s /app/dist/sidecar/main.js /usr/local/bin/couchdb-sidecar
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY pages pages
# On a read-only root file system /dev/shm can still be written to, with every container engine.
ENV NODE_ENV=production \
    TMPDIR=/dev/shm \
    SIDECAR_HOST=0.0.0.0 \
    SIDECAR_PORT=5985
EXPOSE 5985
USER 1000:1000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.SIDECAR_PORT}/_live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/sidecar/main.js"]
CMD ["start"]
