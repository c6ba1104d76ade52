import type { SurfaceChange } from "./contract.ts";
import { functionChanges } from "./function-changes.ts";
import type { ColumnShape, RelationShape, TableInterface } from "./read-table-interface.ts";
import { compareTypes } from "./type-shape-changes.ts";

/** Changes of `/rest/v1`. */
export function tableChanges(before: TableInterface, after: TableInterface): SurfaceChange[] {
  const changes: SurfaceChange[] = [];
  for (const [name, relation] of Object.entries(before.relations)) {
    const now = after.relations[name];
    if (now) changes.push(...relationChanges(name, relation, now));
    else changes.push(breaking(name, "The table is no longer there, or nobody may use it."));
  }
  for (const name of Object.keys(after.relations))
    if (!before.relations[name]) changes.push(compatible(name, "The table is new."));
  return [...changes, ...functionChanges(before.functions, after.functions)];
}

function relationChanges(name: string, before: RelationShape, after: RelationShape): SurfaceChange[] {
  return [
    ...columnsChanges(name, before, after),
    ...(before.deletable && !after.deletable ? [breaking(name, "Rows can no longer be deleted.")] : []),
    ...before.keys
      .filter((key) => !after.keys.includes(key))
      .map((key) => breaking(name, `The key (${key}) is gone: on_conflict and upserts by it are refused.`)),
    ...relationshipChanges(name, before, after),
    ...constraintChanges(name, before, after),
  ];
}

function columnsChanges(name: string, before: RelationShape, after: RelationShape): SurfaceChange[] {
  const takesRows = Object.values(before.columns).some(({ insertable }) => insertable);
  const changes: SurfaceChange[] = [];
  for (const [column, was] of Object.entries(before.columns)) {
    const object = `${name}.${column}`;
    const now = after.columns[column];
    if (now) changes.push(...columnChanges(object, was, now));
    else changes.push(breaking(object, "The column is no longer there, or nobody may use it."));
  }
  for (const [column, now] of Object.entries(after.columns)) {
    if (before.columns[column]) continue;
    const object = `${name}.${column}`;
    changes.push(
      now.required && takesRows
        ? breaking(object, "The column is new, not null and has no default: inserts that do not name it are refused.")
        : compatible(object, "The column is new."),
    );
  }
  return changes;
}

function columnChanges(object: string, was: ColumnShape, now: ColumnShape): SurfaceChange[] {
  const changes: SurfaceChange[] = [];
  const isWritten = was.insertable || was.updatable;
  if (was.selectable && !now.selectable) changes.push(breaking(object, "The column can no longer be read."));
  if (was.insertable && !now.insertable) changes.push(breaking(object, "Inserts can no longer name the column."));
  if (was.updatable && !now.updatable) changes.push(breaking(object, "Updates can no longer set the column."));
  if (was.nullable && !now.nullable && isWritten) changes.push(breaking(object, "Writes of null are refused."));
  else if (was.nullable && !now.nullable) changes.push(compatible(object, "The column is never null."));
  if (was.insertable && now.insertable && !was.required && now.required)
    changes.push(breaking(object, "Inserts that do not name the column are refused."));
  if (!was.nullable && now.nullable && was.selectable) changes.push(dangerous(object, "The column can be null."));
  return [...changes, ...compareTypes(object, was.type, now.type)];
}

function relationshipChanges(name: string, before: RelationShape, after: RelationShape): SurfaceChange[] {
  const changes: SurfaceChange[] = [];
  const count = ({ relationships }: RelationShape, target: string) =>
    relationships.filter((each) => each.target === target).length;
  for (const { name: relationship, target, toOne } of before.relationships) {
    const object = `${name} → ${target}`;
    const now = after.relationships.find((each) => each.name === relationship && each.target === target);
    if (!now) changes.push(breaking(object, `Rows can no longer be embedded by ${relationship}.`));
    else if (now.toOne !== toOne)
      changes.push(breaking(object, `Embedding by ${relationship} gives ${now.toOne ? "an object" : "an array"} now.`));
  }
  for (const { name: relationship, target } of after.relationships) {
    if (before.relationships.some((each) => each.name === relationship && each.target === target)) continue;
    const isAmbiguous = count(before, target) === 1 && count(after, target) > 1;
    const object = `${name} → ${target}`;
    if (isAmbiguous)
      changes.push(breaking(object, `With ${relationship}, embedding by the name of the table is ambiguous.`));
    else changes.push(compatible(object, `Rows can be embedded by ${relationship}.`));
  }
  return changes;
}

function constraintChanges(name: string, before: RelationShape, after: RelationShape): SurfaceChange[] {
  const known = Object.values(before.constraints);
  return Object.entries(after.constraints)
    .filter(([, constraint]) => !known.includes(constraint))
    .map(([constraint, text]) => dangerous(`${name} ${constraint}`, `Writes are also checked by ${text}.`));
}

function breaking(object: string, message: string): SurfaceChange {
  return { level: "breaking", object, message };
}

function dangerous(object: string, message: string): SurfaceChange {
  return { level: "dangerous", object, message };
}

function compatible(object: string, message: string): SurfaceChange {
  return { level: "compatible", object, message };
}
