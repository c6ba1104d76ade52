import type { SurfaceChange } from "./contract.ts";
import { VERBS, type Verb } from "./exposed-objects.ts";
import type { AccessMatrix, RoleAccess, RowAccess, VerbAccess } from "./read-access.ts";

/** Changes of privileges and policies on objects that both databases have. */
export function accessChanges(before: AccessMatrix, after: AccessMatrix): SurfaceChange[] {
  const changes: SurfaceChange[] = [];
  for (const [role, was] of Object.entries(before.roles)) {
    const now = after.roles[role];
    if (!now) {
      changes.push({ level: "breaking", object: `role ${role}`, message: "Requests can no longer use the role." });
      continue;
    }
    for (const [relation, columns] of Object.entries(before.relations)) {
      const left = after.relations[relation];
      if (!left) continue;
      const columnsLeft = columns.filter((column) => left.includes(column));
      for (const verb of VERBS) changes.push(...verbChanges({ role, relation, verb, columnsLeft }, was, now));
    }
    changes.push(...functionAccessChanges(role, was, now, { before, after }));
  }
  for (const role of Object.keys(after.roles))
    if (!before.roles[role])
      changes.push({ level: "compatible", object: `role ${role}`, message: "Requests can use the role." });
  return changes;
}

type AccessPlace = {
  readonly role: string;
  readonly relation: string;
  readonly verb: Verb;
  /** The columns from before that still exist. */
  readonly columnsLeft: readonly string[];
};

function verbChanges(
  { role, relation, verb, columnsLeft }: AccessPlace,
  was: RoleAccess,
  now: RoleAccess,
): SurfaceChange[] {
  const object = `${relation} ${verb} ${role}`;
  const [before, after] = [was.relations[relation]?.[verb], now.relations[relation]?.[verb]];
  if (!before && !after) return [];
  if (!after) return [{ level: "breaking", object, message: `${role} may no longer ${verb}.` }];
  if (!before) return [{ level: "dangerous", object, message: `${role} may ${verb}.` }];
  return [
    ...columnAccessChanges({ role, relation, verb, columnsLeft }, before, after),
    ...rowAccessChanges(object, before.rows, after.rows),
  ];
}

function columnAccessChanges(
  { role, relation, verb, columnsLeft }: AccessPlace,
  before: VerbAccess,
  after: VerbAccess,
): SurfaceChange[] {
  return columnsLeft.flatMap((column): SurfaceChange[] => {
    const [could, can] = [before.columns.includes(column), after.columns.includes(column)];
    const object = `${relation}.${column} ${verb} ${role}`;
    if (could === can) return [];
    if (could) return [{ level: "breaking", object, message: `${role} may no longer ${verb} the column.` }];
    return [{ level: "dangerous", object, message: `${role} may ${verb} the column.` }];
  });
}

/** Compares conditions as texts: a rewritten condition counts as narrower, because nothing shows that it is not. */
function rowAccessChanges(object: string, before: RowAccess, after: RowAccess): SurfaceChange[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const text = `The rows are ${describeRows(after)}; they were ${describeRows(before)}.`;
  if (includesRows(after, before)) return [{ level: "dangerous", object, message: `${text} That is more.` }];
  if (includesRows(before, after)) return [{ level: "breaking", object, message: `${text} That is less.` }];
  return [{ level: "breaking", object, message: `${text} Some may be missing.` }];
}

/** True if the first certainly includes all rows of the second. */
function includesRows(one: RowAccess, other: RowAccess): boolean {
  if (one === "all") return true;
  if (other === "all") return false;
  if (other.permissive.length === 0) return true;
  const isPermitted =
    one.permissive.includes("true") || other.permissive.every((condition) => one.permissive.includes(condition));
  return isPermitted && one.restrictive.every((condition) => other.restrictive.includes(condition));
}

function describeRows(rows: RowAccess): string {
  if (rows === "all") return "all";
  if (rows.permissive.length === 0) return "none";
  const permitted = rows.permissive.map((condition) => `\`${condition}\``).join(" or ");
  return [permitted, ...rows.restrictive.map((condition) => `\`${condition}\``)].join(", and ");
}

function functionAccessChanges(
  role: string,
  was: RoleAccess,
  now: RoleAccess,
  { before, after }: { readonly before: AccessMatrix; readonly after: AccessMatrix },
): SurfaceChange[] {
  return before.functions
    .filter((signature) => after.functions.includes(signature))
    .flatMap((signature): SurfaceChange[] => {
      const [could, can] = [was.functions.includes(signature), now.functions.includes(signature)];
      const object = `${signature} execute ${role}`;
      if (could === can) return [];
      if (could) return [{ level: "breaking", object, message: `${role} may no longer call the function.` }];
      return [{ level: "dangerous", object, message: `${role} may call the function.` }];
    });
}
