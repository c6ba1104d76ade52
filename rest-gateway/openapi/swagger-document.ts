import type { Routine } from "../../engine/catalog/routines.ts";
import { POSTGREST_VERSION } from "../postgrest-version.ts";
import { readComment } from "./comment.ts";
import type { Subject } from "./subject.ts";
import { definition } from "./swagger-document/definitions.ts";
import { SHARED_PARAMETERS, tableParameters } from "./swagger-document/parameters.ts";
import { routinePath } from "./swagger-document/routine-paths.ts";
import { tablePath } from "./swagger-document/table-paths.ts";
import { makeViewer } from "./viewer.ts";
import type { Document } from "./write.ts";

const MEDIA_TYPES = [
  "application/json",
  "application/vnd.pgrst.object+json;nulls=stripped",
  "application/vnd.pgrst.object+json",
  "text/csv",
];

/** The table interface in Swagger 2.0, as PostgREST describes itself; where that differs, docs/table-interface.md says why. */
export async function swaggerDocument(subject: Subject): Promise<Document> {
  const { catalog, serverUrl, securityActive } = subject;
  const viewer = await makeViewer(subject);
  const { summary, description } = readComment(viewer.schema?.comment ?? null);
  return {
    swagger: "2.0",
    info: {
      title: summary ?? "Table interface",
      description: summary ? (description ?? "") : "Tables, views and functions, made from the database.",
      version: POSTGREST_VERSION,
    },
    ...address(serverUrl),
    consumes: MEDIA_TYPES,
    produces: MEDIA_TYPES,
    paths: function* () {
      yield ["/", ROOT];
      for (const { table, columns } of viewer.tables) yield [`/${table.name}`, tablePath(table, columns)];
      for (const overloads of viewer.routines) {
        yield [`/rpc/${overloads[0]!.name}`, routinePath(toOne(overloads), { catalog, viewer })];
      }
    },
    definitions: function* () {
      for (const visible of viewer.tables) yield [visible.table.name, definition(visible, viewer, catalog)];
    },
    parameters: function* () {
      yield* SHARED_PARAMETERS;
      for (const { table, columns } of viewer.tables) yield* tableParameters(table, columns);
    },
    securityDefinitions: securityActive ? SECURITY_DEFINITIONS : undefined,
    security: securityActive ? [{ JWT: [] }] : undefined,
    externalDocs: {
      description: "PostgREST Documentation",
      url: "https://postgrest.org/en/v14/references/api.html",
    },
  };
}

/** There is one description to a path: of overloads, that with the most arguments, and then that whose names come last. */
function toOne(overloads: readonly Routine[]): Routine {
  const namesOf = ({ arguments: given }: Routine) => given.map(({ name }) => name ?? "").join();
  const inOrder = (a: Routine, b: Routine) =>
    a.arguments.length - b.arguments.length || Number(namesOf(a) > namesOf(b)) - Number(namesOf(a) < namesOf(b));
  return overloads.toSorted(inOrder).at(-1)!;
}

/** Host and scheme are those that the document was fetched from, unless they are known. */
function address(serverUrl: string): object {
  const url = URL.parse(serverUrl);
  if (!url) return { basePath: serverUrl };
  const scheme = url.protocol.slice(0, -1);
  const port = url.port || (scheme === "https" ? "443" : "80");
  return { host: `${url.hostname}:${port}`, basePath: url.pathname, schemes: [scheme] };
}

const ROOT = {
  get: {
    tags: ["Introspection"],
    summary: "OpenAPI description (this document)",
    produces: ["application/openapi+json", "application/json"],
    responses: { 200: { description: "OK" } },
  },
};

const SECURITY_DEFINITIONS = {
  JWT: {
    description: 'Add the token prepending "Bearer " (without quotes) to it',
    type: "apiKey",
    name: "Authorization",
    in: "header",
  },
};
