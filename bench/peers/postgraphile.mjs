// PostGraphile as its documentation begins with it: the Amber preset, its own adaptor for pg and its own server, and for
// each request the settings that the policies read.

import { createSecretKey } from "node:crypto";
import { createServer } from "node:http";
import jwt from "jsonwebtoken";
import { postgraphile } from "postgraphile";
import { makePgService } from "postgraphile/adaptors/pg";
import { grafserv } from "postgraphile/grafserv/node";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";
import { makeJSONPgSmartTagsPlugin } from "postgraphile/utils";

const { PORT, DATABASE_URL, JWT_SECRET, POOL_SIZE } = process.env;
const secret = createSecretKey(Buffer.from(JWT_SECRET));

function settingsOf(authorization) {
  if (!authorization) return { role: "anon", "request.interface": "graphql" };
  const claims = jwt.verify(authorization.slice("Bearer ".length), secret, { algorithms: ["HS256"] });
  return { role: claims.role, "request.jwt.claims": JSON.stringify(claims), "request.interface": "graphql" };
}

const READ = { tags: { behavior: "attribute:select" } };
const HIDDEN = { tags: { behavior: "-typeField" } };
/** Without them its names clash: it makes mutations of tables as well as of functions, and fields of both. */
const TAGS = makeJSONPgSmartTagsPlugin({
  version: 1,
  config: {
    class: {
      articles: { tags: { behavior: "-insert -update -delete" }, attribute: { title: READ, summary: READ } },
      comments: { tags: { behavior: "-insert -update -delete" } },
      users: { tags: { behavior: "-insert -update -delete" } },
    },
    procedure: { articles_title: HIDDEN, articles_summary: HIDDEN },
  },
});

const preset = {
  extends: [PostGraphileAmberPreset],
  plugins: [TAGS],
  pgServices: [
    makePgService({
      connectionString: DATABASE_URL,
      schemas: ["public"],
      poolConfig: { max: Number(POOL_SIZE) },
      pgSettings: ({ node }) => settingsOf(node?.req.headers.authorization),
    }),
  ],
  grafserv: { graphiql: false },
};

const server = createServer();
await postgraphile(preset).createServ(grafserv).addTo(server);
server.listen(Number(PORT), "127.0.0.1");
process.on("SIGTERM", () => process.exit());
