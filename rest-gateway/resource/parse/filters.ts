import type { FieldError } from "../../../engine/errors.ts";
import type { RowCondition } from "../../../engine/statement/intent.ts";
import type { Collection } from "../collections.ts";
import type { CollectionField } from "../fields.ts";
import { equalsCondition } from "../intents.ts";
import { characterFault, isOutOfRange, TEXT_TYPES, textFault } from "./values.ts";

/** Parses a filter parameter; null if the name is not a filter. Invalid values are reported to `refuse`. */
export function parseFilter(
  name: string,
  values: readonly string[],
  collection: Collection,
  refuse: (fault: FieldError) => void,
): RowCondition | null {
  const searchText = (): string => {
    const text = values.join(" ");
    const fault = characterFault(text);
    if (fault) refuse({ field: name, message: `It ${fault}.` });
    return text;
  };
  const search = collection.searches.find(({ parameter }) => parameter === name);
  if (search) {
    const { schema, name: routine } = search.routine;
    return {
      kind: "row",
      negated: false,
      operation: { kind: "found", by: { schema, name: routine }, value: searchText() },
    };
  }
  const field = filterFieldOf(name, collection);
  if (!field) return name === KEYWORD ? keywordCondition(searchText(), collection) : null;
  if (field.isReadByFunction.text) {
    searchText();
    return toCondition(field, values);
  }
  const type = field.column.baseType.kind === "array" ? field.column.baseType.element : field.column.type;
  for (const value of values) {
    const fault = textFault(type, value);
    if (fault) refuse({ field: name, message: `It ${fault}.` });
  }
  // No row has a number outside the range of its type.
  const possible = values.filter((value) => !isOutOfRange(type, value));
  if (possible.length === 0) return matchNothing(field);
  return toCondition(field, possible);
}

const KEYWORD = "keyword";

/** The names of all filter parameters of the collection. */
export function filterNames(collection: Collection): string[] {
  const fields = collection.fields.filter(({ filterable }) => filterable).map(({ name }) => name);
  const references = collection.references.filter(({ fields }) => fields.length === 1).map(({ name }) => name);
  const searches = collection.searches.map(({ parameter }) => parameter);
  const anyText = textFields(collection).length > 0 ? [KEYWORD] : [];
  return [...new Set([...fields, ...references, ...searches, ...anyText])];
}

/** The field of a filter parameter. */
export function filterFieldOf(name: string, collection: Collection): CollectionField | undefined {
  const field = fieldNamed(name, collection);
  return field?.filterable ? field : undefined;
}

/** A field by its name, or by the name of the reference that it is the foreign key of. */
export function fieldNamed(name: string, { fields, references }: Collection): CollectionField | undefined {
  const own = fields.find((each) => each.name === name);
  if (own) return own;
  const reference = references.find((each) => each.name === name);
  return reference?.fields.length === 1 ? reference.fields[0] : undefined;
}

/** Several values match any of them; array columns match if they contain the value. */
function toCondition({ column }: CollectionField, values: readonly string[]): RowCondition {
  const field = { name: column.name, path: [] };
  if (column.baseType.kind === "array") {
    const contains = values.map((value): RowCondition => {
      const item = `{"${value.replace(/[\\"]/g, "\\$&")}"}`;
      const operation = { kind: "compare", operator: "cs", quantifier: null, value: item } as const;
      return { kind: "filter", field, negated: false, operation };
    });
    return { kind: "or", negated: false, conditions: contains };
  }
  const [only, ...others] = values;
  if (others.length === 0) return equalsCondition(column.name, only!);
  return { kind: "filter", field, negated: false, operation: { kind: "in", values } };
}

/** A condition that no row meets. */
function matchNothing({ column }: CollectionField): RowCondition {
  const isNull = (value: "null" | "not_null"): RowCondition => {
    return { kind: "filter", field: { name: column.name, path: [] }, negated: false, operation: { kind: "is", value } };
  };
  return { kind: "and", negated: false, conditions: [isNull("null"), isNull("not_null")] };
}

/** Searches all text fields, if no search function has this name; null without text fields. */
function keywordCondition(keyword: string, collection: Collection): RowCondition | null {
  const [first, ...others] = textFields(collection);
  if (!first) return null;
  if (keyword.trim() === "") return matchNothing(first);
  const pattern = `%${keyword.replace(/[\\%_]/g, "\\$&")}%`;
  const conditions = [first, ...others].map(({ column }): RowCondition => {
    const operation = { kind: "compare", operator: "ilike", quantifier: null, value: pattern } as const;
    return { kind: "filter", field: { name: column.name, path: [] }, negated: false, operation };
  });
  return { kind: "or", negated: false, conditions };
}

function textFields({ fields }: Collection): CollectionField[] {
  return fields.filter(({ filterable, column }) => filterable && TEXT_TYPES.has(column.baseType.name));
}
