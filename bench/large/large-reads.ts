import { API_KEY, TOKENS } from "../comparison/tokens.ts";
import { median } from "../measuring/median.ts";

type LargeRead = {
  readonly name: string;
  /** The path in the table interface; null for an operation of GraphQL. */
  readonly path: ((rows: number) => string) | null;
  readonly operation?: (rows: number) => string;
  readonly prefer?: string;
};

const PAGE = "entries?select=id,kind,made_at&order=id&limit=20";
const COUNTED = "entries?select=id&limit=1";

const graphqlPage = (fields: string) => (rows: number) =>
  `{ entries(first: 20, where: {id: {gt: "${rows - 1_000}"}}, orderBy: [{id: ASC}]) { ${fields} edges { node { id kind madeAt } } } }`;

export const LARGE_READS: readonly LargeRead[] = [
  { name: "one row by key", path: (rows) => `entries?id=eq.${rows >> 1}` },
  { name: "20 rows, the first page", path: () => PAGE },
  { name: "20 rows, the last page by key (id=gt.…)", path: (rows) => `${PAGE}&id=gt.${rows - 20}` },
  { name: "20 rows, the last page by offset", path: (rows) => `${PAGE}&offset=${rows - 20}` },
  { name: "20 rows of a kind, by index", path: () => `${PAGE}&kind=eq.kind%2042` },
  { name: "count=exact", path: () => COUNTED, prefer: "count=exact" },
  { name: "count=planned", path: () => COUNTED, prefer: "count=planned" },
  { name: "count=estimated", path: () => COUNTED, prefer: "count=estimated" },
  { name: "GraphQL, 20 rows by key", path: null, operation: graphqlPage("") },
  { name: "GraphQL, the same with totalCount of 1,000", path: null, operation: graphqlPage("totalCount") },
];

/** Measures the median time of a single request, in milliseconds, after a first one. */
export async function measureRead(
  base: URL,
  read: LargeRead,
  { rows, rounds }: { readonly rows: number; readonly rounds: number },
): Promise<number> {
  await request(base, read, rows);
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now();
    await request(base, read, rows);
    times.push(performance.now() - startedAt);
  }
  return median(times);
}

async function request(base: URL, { name, path, operation, prefer }: LargeRead, rows: number): Promise<void> {
  const headers = {
    apikey: API_KEY,
    Authorization: `Bearer ${TOKENS.cached[0]}`,
    ...(prefer ? { Prefer: prefer } : {}),
    ...(operation ? { "Content-Type": "application/json" } : {}),
  };
  const response = path
    ? await fetch(new URL(path(rows), base), { headers })
    : await fetch(new URL("/graphql", base), {
        method: "POST",
        headers,
        body: JSON.stringify({ query: operation!(rows) }),
      });
  const text = await response.text();
  if (!response.ok || text.startsWith('{"errors"'))
    throw new Error(`${name}: ${response.status} ${text.slice(0, 500)}`);
}
