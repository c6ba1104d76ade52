import { entityPermissions, type Introspection, type PgProc } from "postgraphile/graphile-build-pg/pg-introspection";
import type { LeftOut } from "./left-out.ts";
import { inputTypesOf, signatureOf } from "./sql-names.ts";

export type FunctionChoice = {
  readonly callable: readonly PgProc[];
  readonly leftOut: readonly LeftOut[];
};

/** What GraphQL can show of the pseudo-types. */
const SHOWN_PSEUDO_TYPES: ReadonlySet<string> = new Set(["void", "record"]);
/** `anyelement`, `anycompatiblearray`, …: what they stand for is known from a call only. `any` and `internal` cannot be passed at all. */
const POLYMORPHIC = /^any./;
const OTHER_KINDS: Readonly<Record<string, { readonly object: string; readonly reason: string }>> = {
  a: { object: "aggregate", reason: "GraphQL calls no aggregates" },
  p: { object: "procedure", reason: "GraphQL calls no procedures" },
  w: { object: "function", reason: "GraphQL calls no window functions" },
};

/** The functions of these schemas that GraphQL can call; those that clients may execute and GraphQL cannot call are named. */
export function chooseFunctions(introspection: Introspection, schemas: readonly string[]): FunctionChoice {
  const ofExtensions = membersOfExtensions(introspection);
  const constructors = rangeConstructors(introspection);
  const caller = introspection.getCurrentUser()!;
  const offered = introspection.procs.filter(
    (proc) =>
      schemas.includes(proc.getNamespace()?.nspname ?? "") &&
      !ofExtensions.has(proc._id) &&
      !constructors.has(qualified(proc)) &&
      !isInternal(proc) &&
      entityPermissions(introspection, proc, caller, true).execute,
  );

  const leftOut: LeftOut[] = [];
  const leaveOut = (proc: PgProc, reason: string, fix: string) =>
    leftOut.push({
      object: `${OTHER_KINDS[proc.prokind ?? ""]?.object ?? "function"} ${signatureOf(proc)}`,
      reason,
      fix,
      isFault: false,
    });
  const callable = offered.filter((proc) => {
    const reason = reasonAgainst(proc);
    if (reason !== null) leaveOut(proc, reason, adviceFor(proc));
    return reason === null;
  });

  const served = new Set(callable);
  for (const group of Map.groupBy(callable.filter(competes), placeOf).values()) {
    const [first, ...others] = group.toSorted((one, other) => Number(one._id) - Number(other._id));
    for (const proc of others) {
      served.delete(proc);
      const fix = `comment on function ${signatureOf(proc)} is '@name another_name';`;
      leaveOut(proc, `${signatureOf(first!)} was created before it and has its name`, fix);
    }
  }
  return { callable: [...served], leftOut };
}

function adviceFor(proc: PgProc): string {
  return `-- Where GraphQL clients need ${signatureOf(proc)}: grant them a function that calls it.`;
}

function reasonAgainst(proc: PgProc): string | null {
  const other = OTHER_KINDS[proc.prokind ?? ""];
  if (other) return other.reason;
  if (proc.proname.startsWith("__")) return "GraphQL keeps names that begin with two underscores to itself";
  const all = proc.getArguments();
  if (all.some(({ isVariadic }) => isVariadic)) return "it takes VARIADIC arguments";
  const types = [proc.getReturnType(), ...all.map(({ type }) => type)];
  const polymorphic = types.find((type) => type?.typtype === "p" && POLYMORPHIC.test(type.typname));
  if (polymorphic) return `it takes or returns ${polymorphic.typname}, which stands for any type`;
  if (inputTypesOf(proc).some(({ typname }) => typname === "record")) return "it takes a record of any type";
  const columns = all.filter(({ isOut }) => isOut);
  if (proc.getReturnType()?.typname === "record" && columns.length === 0) {
    return "it returns record without saying which columns that has";
  }
  return null;
}

/** Of triggers, languages, types and indexes: nobody calls those from SQL. */
function isInternal(proc: PgProc): boolean {
  return [proc.getReturnType(), ...proc.getArguments().map(({ type }) => type)].some(
    (type) => type?.typtype === "p" && !SHOWN_PSEUDO_TYPES.has(type.typname) && !POLYMORPHIC.test(type.typname),
  );
}

/** Whether it would have the name that others in its place have too: a comment neither names nor hides it. */
function competes(proc: PgProc): boolean {
  const { name, fieldName, omit, behavior } = proc.getTags();
  const isHidden = omit !== undefined || [behavior ?? []].flat().join(" ").split(/\s+/).includes("-*");
  return typeof name !== "string" && typeof fieldName !== "string" && !isHidden && placeOf(proc) !== null;
}

/** What a function is a field of: functions of one name in several places are no trouble. Null for actions, which GraphQL does not have. */
function placeOf(proc: PgProc): string | null {
  const [first] = inputTypesOf(proc);
  const isOfRow = first?.typtype === "c";
  const isVolatile = proc.provolatile === "v";
  if (isOfRow && isVolatile && first.getClass()?.relkind !== "c") return null;
  return `${qualified(proc)} ${isVolatile ? "mutation" : isOfRow ? first._id : "query"}`;
}

function qualified({ pronamespace, proname }: PgProc): string {
  return `${pronamespace}.${proname}`;
}

/** Of a range type core takes no function for one. */
function rangeConstructors({ types }: Introspection): ReadonlySet<string> {
  return new Set(types.filter(({ typtype }) => typtype === "r").map((type) => `${type.typnamespace}.${type.typname}`));
}

function membersOfExtensions({ depends, catalog_by_oid: catalogs }: Introspection): ReadonlySet<string> {
  const isOf = (oid: string | null, catalog: string) => oid !== null && catalogs[oid] === catalog;
  const members = depends.filter(
    ({ classid, refclassid, deptype }) =>
      deptype === "e" && isOf(classid, "pg_proc") && isOf(refclassid, "pg_extension"),
  );
  return new Set(members.map(({ objid }) => objid!));
}
