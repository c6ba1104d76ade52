import { TOKENS } from "../comparison/tokens.ts";

export const INTERFACES = ["/rest/v1", "/api/v1", "/graphql", "introspection", "OpenAPI"] as const;
export type InterfaceName = (typeof INTERFACES)[number];

/** True if the interface knows the table. */
export function isVisibleIn(interfaceName: InterfaceName, url: string, table: string): Promise<boolean> {
  return PROBES[interfaceName](url, table);
}

const Authorization = `Bearer ${TOKENS.cached[0]}`;
const apikey = TOKENS.cached[0]!;

const isRest = async (url: string, table: string) =>
  (await read(`${url}/rest/v1/${table}?limit=1`, { apikey, Authorization })).ok;

const PROBES: Readonly<Record<InterfaceName, (url: string, table: string) => Promise<boolean>>> = {
  "/rest/v1": isRest,
  "/api/v1": async (url, table) =>
    (await read(`${url}/api/v1/${table.replaceAll("_", "-")}?limit=1`, { Authorization })).ok,
  "/graphql": async (url, table) => {
    const answer = await askGraphql(url, `{ ${fieldOf(table)}(id: 1) { id } }`);
    return answer.includes(`{"data":`);
  },
  introspection: async (url, table) => {
    const field = fieldOf(table);
    const type = `${field.slice(0, 1).toUpperCase()}${field.slice(1)}`;
    return (await askGraphql(url, `{ __type(name: "${type}") { name } }`)).includes(`"${type}"`);
  },
  // A document of thousands of tables is expensive, so the table is first looked up in the table interface.
  OpenAPI: async (url, table) => {
    if (!(await isRest(url, table))) return false;
    const answer = await read(`${url}/rest/v1/`, {
      apikey,
      Authorization,
      Accept: "application/vnd.oai.openapi+json",
    });
    return answer.text.includes(`"/${table}"`);
  },
};

/** Returns the field for one row of the table. */
function fieldOf(table: string): string {
  return table.replace(/s$/, "").replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

async function askGraphql(url: string, query: string): Promise<string> {
  const headers = { "Content-Type": "application/json", Authorization };
  const answer = await fetch(`${url}/graphql`, { method: "POST", headers, body: JSON.stringify({ query }) });
  return answer.text();
}

async function read(url: string, headers: Readonly<Record<string, string>>) {
  const answer = await fetch(url, { headers });
  return { ok: answer.ok, text: await answer.text() };
}
