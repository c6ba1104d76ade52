import { PgClassExpressionStep, type PgCodec, PgSelectSingleStep, pgSelectSingleFromRecord } from "@dataplan/pg";
import { error, type FieldPlanResolver, get, inhibitOnNull, type Step } from "grafast";
import { withheldError } from "../../../graphql/schemas/prune-schema.ts";
import { type FieldSource, ownValueSql } from "../../../plugins/field-sources.ts";
import type { Codec, SchemaResource } from "../../../plugins/table.ts";

type ColumnSource = Extract<FieldSource, { readonly kind: "column" }>;

/** Null where core's plan holds. Core sends each composite value back to Postgres to extract its fields, which the value already contains. */
export function planColumn({ column, codec, table, via }: ColumnSource): FieldPlanResolver | null {
  if (via) return null;
  if (holdsCompositeValues(codec) || !innermostCodecOf(codec).attributes) return ($value) => get($value, column);
  return table ? ($value) => planTableRow(table, get($value, column) as Step) : null;
}

/** True for a composite type that is not the row type of a table, and for lists of its values. */
export function holdsCompositeValues(codec: Codec): boolean {
  const { attributes, extensions } = innermostCodecOf(codec);
  return Boolean(attributes) && extensions?.isTableLike === false;
}

function innermostCodecOf(codec: Codec): Codec {
  return codec.arrayOfCodec ? innermostCodecOf(codec.arrayOfCodec) : codec;
}

/**
 * The row of a table has relations and functions, which need Postgres. They are added to the statement that reads the value, where it
 * can be extended; otherwise a statement of their own runs unless the value is null.
 */
function planTableRow(table: SchemaResource, $row: Step): Step {
  const $record = canExtendStatement($row) ? $row : inhibitOnNull($row);
  const $found = pgSelectSingleFromRecord(table, $record as Parameters<typeof pgSelectSingleFromRecord>[1]);
  $found.getClassStep().setTrusted();
  return $found;
}

function canExtendStatement($value: Step): boolean {
  const $row = $value instanceof PgClassExpressionStep ? $value.getParentStep() : null;
  return $row instanceof PgSelectSingleStep && !$row.getClassStep().hasSideEffects;
}

export function planWithheld(source: Extract<FieldSource, { readonly kind: "withheld" }>): FieldPlanResolver {
  return () => error(source.error);
}

/** The value of the caller's own rows, which is null for others. */
export function planOwnValue(source: Extract<FieldSource, { readonly kind: "own value" }>): FieldPlanResolver {
  return ($parent) => {
    const $row = $parent as Step as PgSelectSingleStep;
    if (!("getClassStep" in $row)) return error(withheldError);
    return $row.select(ownValueSql($row.getClassStep().alias, source), source.codec as PgCodec);
  };
}
