import type { Caller } from "../../engine/caller/caller.ts";
import { readingPolicies } from "../../engine/catalog/applicable-policies.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import { jsonMembers } from "../../engine/json-members.ts";
import { type FunctionDependency, type PolicyDependency, readPolicyDependencies } from "./policy-dependencies.ts";

/** The claims on which it depends who sees a row; `all` where that cannot be told. */
export type ClaimsRead = ReadonlySet<string> | "all";

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
    const conditions = readingPolicies(table).flatMap(({ using }) => using ?? []);
    return claimsIn(conditions, await readPolicyDependencies(asOwner, table));
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

// All claims, as Postgres writes the expression.
const SETTING = /current_setting\('request\.jwt\.claims'::text(?:, (?:true|false))?\)/.source;
const ALL_CLAIMS = `\\((?:${SETTING}|NULLIF\\(${SETTING}, ''::text\\))\\)::jsonb?`;
/** The body of a function that hands on all claims. */
const HANDS_ON = new RegExp(`^RETURN ${ALL_CLAIMS}$`);
/** Any setting may hold claims but one that is named here and is the same for all callers of a role. */
const DOUBTFUL_SETTING = /current_setting\((?!'(?!request\.jwt)[\w.]+'::text[,)])/i;
/** Functions of Postgres that run a text as SQL, or list settings. */
const DOUBTFUL_FUNCTION =
  /\b(?:(?:query|cursor|table|schema|database)_to_xml\w*|ts_stat|ts_rewrite|pg_show_all_settings|pg_input_\w+)\(/i;

/** Told from the texts, as Postgres writes them: what does not look like reading one claim counts as reading all. */
function claimsIn(conditions: readonly string[], dependencies: readonly PolicyDependency[]): ClaimsRead {
  const texts: string[] = [];
  const readers: string[] = [];
  for (const dependency of dependencies) {
    if (dependency.kind === "condition") texts.push(dependency.text);
    else if (dependency.kind === "relation") {
      if (!dependency.isSameForAll) return "all";
    } else if (isReader(dependency)) readers.push(dependency.name);
    else if (dependency.body !== null) texts.push(dependency.body);
    else if (!dependency.isImmutableC) return "all";
  }
  // Rows are judged by the policies that the catalogue has: of others nobody knows here what they use.
  if (!conditions.every((condition) => texts.includes(condition))) return "all";
  const calls = readers.map((name) => `${RegExp.escape(name)}\\(`).join("|") || NOTHING;
  const source = `(?<![\\w$".])(?:${ALL_CLAIMS}|(?:${calls})\\))`;
  const oneClaim = new RegExp(`(?:${source}|\\( SELECT ${source} AS [\\w"]+\\)) ->>? '(?<claim>[^'\\\\]+)'::text`, "g");
  const claims = new Set<string>();
  for (const text of texts) {
    for (const { groups } of text.matchAll(oneClaim)) claims.add(groups!.claim!);
    const rest = text.replace(oneClaim, "");
    if (DOUBTFUL_SETTING.test(rest) || DOUBTFUL_FUNCTION.test(rest) || new RegExp(calls).test(rest)) return "all";
  }
  return claims;
}

const NOTHING = "(?!)";

function isReader({ body, isPlainJson }: FunctionDependency): boolean {
  return isPlainJson && body !== null && HANDS_ON.test(body);
}

const keys = new WeakMap<Caller, WeakMap<ReadonlySet<string>, string>>();

/** Two callers of one role with the same key see the same rows. */
export function claimsKey(caller: Caller, read: ClaimsRead): string {
  if (read === "all") return caller.claimsText;
  const known = keys.get(caller) ?? new WeakMap<ReadonlySet<string>, string>();
  keys.set(caller, known);
  const key = known.get(read) ?? spellKey(caller, read);
  known.set(read, key);
  return key;
}

/** By the texts of the claims, which have all digits of a number. A claim that is null is not one that is missing. */
function spellKey({ claimsText }: Caller, read: ReadonlySet<string>): string {
  const members = jsonMembers(claimsText);
  return JSON.stringify([...read].map((name) => members.get(name) ?? null));
}
