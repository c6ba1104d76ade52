import { TOKENS } from "../comparison/tokens.ts";

export const INTERFACES = ["/rest/v1", "/api/v1", "/graphql", "OpenAPI"] as const;
export type InterfaceName = (typeof INTERFACES)[number];

/** Whether the interface knows the table. */
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
    const type = table.replace(/s$/, "").replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
    const answer = await fetch(`${url}/graphql`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization },
      body: JSON.stringify({ query: `{ __type(name: "${type}") { name } }` }),
    });
    return (await answer.text()).includes(`"${type}"`);
  },
  // A document of thousands of tables is no small thing to ask for in vain.
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

async function read(url: string, headers: Readonly<Record<string, string>>) {
  const answer = await fetch(url, { headers });
  return { ok: answer.ok, text: await answer.text() };
}
