import type { Caller } from "../../engine/caller/caller.ts";
import { readingPolicies } from "../../engine/catalog/applicable-policies.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";

/** The claims on which it depends who sees a row; `all` where that cannot be told. */
export type ClaimsRead = ReadonlySet<string> | "all";

/** A function or a relation that the policies use, directly or by way of a function. */
type Used = {
  readonly kind: "function" | "relation";
  readonly name: string;
  /** Of a function whose body Postgres keeps parsed, and with it what it uses. */
  readonly body: string | null;
  /** A function that always answers the same, or a table that shows the same rows to everybody. */
  readonly isSteady: boolean;
};

// What comes with Postgres is not in pg_depend: of that, current_setting alone knows who asks.
const USED = `
  with recursive used (class, object) as (
    select 'pg_policy'::regclass::oid, oid from pg_policy where polrelid = $1 and polcmd in ('*', 'r')
    union
    select d.refclassid, d.refobjid
    from used join pg_depend d on d.classid = used.class and d.objid = used.object
    where used.class in ('pg_policy'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass)
      and (d.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass)
        or d.refclassid = 'pg_class'::regclass and d.refobjid <> $1)
  )
  select 'function' as kind, n.nspname || '.' || p.proname as name, pg_get_function_sqlbody(p.oid) as body,
    p.provolatile = 'i' as "isSteady"
  from used join pg_proc p on used.class = 'pg_proc'::regclass and p.oid = used.object
    join pg_namespace n on n.oid = p.pronamespace
  union all
  select 'relation', c.oid::regclass::text, null, c.relkind in ('r', 'p') and not c.relrowsecurity
  from used join pg_class c on used.class = 'pg_class'::regclass and c.oid = used.object`;

export type ClaimsReader = {
  read(table: Table): Promise<ClaimsRead>;
  /** The schema has changed: a function that a policy calls may read other claims, though the catalogue is the same. */
  forget(): void;
};

/** Where nobody tells that the schema has changed. */
const LONGEST_KNOWN_MS = 5_000;

/** Asks once per table, for a while. */
export function makeClaimsReader(asOwner: AsOwner): ClaimsReader {
  let known = new WeakMap<Table, { readonly claims: Promise<ClaimsRead>; readonly at: number }>();
  const read = async (table: Table): Promise<ClaimsRead> => {
    const { rows } = await asOwner((client) => client.query<Used>(USED, [table.oid]));
    return claimsIn(
      readingPolicies(table).flatMap(({ using }) => using ?? []),
      rows,
    );
  };
  return {
    read: (table) => {
      const last = known.get(table);
      if (last && performance.now() - last.at < LONGEST_KNOWN_MS) return last.claims;
      // What was true a moment ago is better than to tell nobody anything.
      const claims = last ? read(table).catch(() => last.claims) : read(table);
      known.set(table, { claims, at: performance.now() });
      claims.catch(() => {
        if (known.get(table)?.claims === claims) known.delete(table);
      });
      return claims;
    },
    forget: () => {
      known = new WeakMap();
    },
  };
}

/** Where all claims are read: by this function of ours and Supabase's, or by its body written out. */
const ALL_CLAIMS =
  /(?:auth\.jwt\(\)|\(?(?:NULLIF\()?current_setting\('request\.jwt\.claims'::text(?:, true)?\)(?:, ''::text\))?\)?(?:::jsonb?\)?))/
    .source;
const ONE_CLAIM = new RegExp(`${ALL_CLAIMS}\\s*->>?\\s*'(?<claim>[^']+)'::text`, "g");
const ANY_READING = /auth\.jwt\(|current_setting\(\s*'request\.jwt/;
/** Functions whose body only hands on all claims: whoever calls them says which one it wants. */
const READERS = new Set(["auth.jwt"]);

/** Told from the text, as Postgres writes it: what does not look like reading one claim counts as reading all. */
function claimsIn(policies: readonly string[], used: readonly Used[]): ClaimsRead {
  const claims = new Set<string>();
  const bodies: string[] = [...policies];
  for (const { name, body, isSteady } of used) {
    if (isSteady || READERS.has(name)) continue;
    if (body === null) return "all";
    bodies.push(body);
  }
  for (const body of bodies) {
    for (const { groups } of body.matchAll(ONE_CLAIM)) claims.add(groups!.claim!);
    const rest = body.replace(ONE_CLAIM, "");
    if (ANY_READING.test(rest) || readsSettingByVariable(rest)) return "all";
  }
  return claims;
}

/** Two callers of one role with the same key see the same rows. */
export function claimsKey({ claims, claimsText }: Caller, read: ClaimsRead): string {
  return read === "all" ? claimsText : JSON.stringify([...read].map((name) => claims[name] ?? null));
}

/** `current_setting(name)`, where nobody knows which one that is. */
function readsSettingByVariable(text: string): boolean {
  return [...text.matchAll(/current_setting\(/g)].some(({ index }) => text[index + "current_setting(".length] !== "'");
}
