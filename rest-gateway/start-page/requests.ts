import type { Table } from "../../engine/catalog/tables.ts";

export type Sample = { readonly by: string; readonly text: string };

export type Surroundings = {
  readonly address: string;
  /** The anonymous key, or where to put it. */
  readonly key: string;
  /** Columns that may be read by the one who is shown this. */
  readonly columns: readonly string[];
  /** Null when GraphQL does not show the table. */
  readonly graphqlQuery: string | null;
};

const MOST_COLUMNS = 4;
const PLAIN = /^[a-z_]\w*$/i;

/** One question, put to each interface; to be copied as it stands. */
export function sampleRequests(table: Table, { address, key, columns, graphqlQuery }: Surroundings): Sample[] {
  const chosen = columns.slice(0, MOST_COLUMNS).map(asSelected);
  const select = chosen.map(encodeURIComponent).join(",");
  const path = encodeURIComponent(table.name);
  const samples: Sample[] = [
    {
      by: "curl",
      text: `curl -H "apikey: ${key}" \\\n  "${address}/rest/v1/${path}?select=${select}&limit=5"`,
    },
    {
      by: "supabase-js",
      text: `import { createClient } from "@supabase/supabase-js";

const supabase = createClient("${address}", "${key}");
const { data, error } = await supabase.from(${JSON.stringify(table.name)}).select(${JSON.stringify(chosen.join(", "))}).limit(5);`,
    },
  ];
  if (graphqlQuery !== null) samples.push({ by: "GraphQL", text: graphqlQuery });
  return samples;
}

/** A name that `select` and supabase-js would take apart stands in quotes. */
function asSelected(name: string): string {
  return PLAIN.test(name) ? name : `"${name.replace(/["\\]/g, "\\$&")}"`;
}
