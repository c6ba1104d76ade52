import { baseTypeOf } from "#catalog";
import { ApiError } from "#runtime";
import {
  type FieldReference,
  MAX_SEARCHED_RELATIONS,
  type Measure,
  type RowCondition,
  type SearchedField,
  type SearchedPart,
  type SearchOperation,
} from "../intent/intent.ts";
import { hasName, isPlainText, planField, typeOfField } from "./scope.ts";
import type { SearchedWords, ValueExpression, WherePredicate } from "./selection.ts";
import type { PlanContext, SelectionContext } from "./selection-context.ts";

type PlannedPart = SearchedPart<ValueExpression>;
type SearchCondition = Extract<RowCondition, { kind: "search" }>;

/** The name in `rank()` and `highlight()` that stands for all fields of the request's search. */
const SEARCH = "search";

export function planSearch({ negated, fields, operation }: SearchCondition, context: SelectionContext): WherePredicate {
  const document = fields.map((field) => planPart(field, context));
  return { kind: "found in document", negated, document, words: planWords(operation, context.planContext) };
}

/** The rank of a field or of the searched fields, or their text with the words marked. */
export function planSearchResult(
  field: FieldReference,
  measure: Measure,
  operation: SearchOperation | null,
  context: SelectionContext,
): ValueExpression {
  const search = context.node.conditions.find((condition) => condition.kind === "search");
  const wanted = operation ?? search?.operation;
  if (!wanted) throw searchMissing(field.name, measure);
  const isWhole = operation === null && field.name === SEARCH && !hasName(context.scope, SEARCH);
  const fields = isWhole && search ? search.fields : [{ relations: [], field }];
  const parts = fields.map((each) => planPart(each, context));
  const words = planWords(wanted, context.planContext);
  if (measure.name === "rank") return { kind: "rank", document: parts, words };
  const texts = parts.filter(({ form }) => form !== "tsvector").map(({ value }) => value);
  if (texts.length === 0) throw notHighlighted(field.name, measure);
  return { kind: "highlight", texts, words };
}

function planWords(operation: SearchOperation, { parameterFor }: PlanContext): SearchedWords {
  const { operator, language } = operation;
  return { operator, language, parameter: parameterFor(operation) };
}

function planPart({ relations, field }: SearchedField, context: SelectionContext): PlannedPart {
  if (relations.length > MAX_SEARCHED_RELATIONS) throw tooFar(relations, field.name);
  const [relation, ...below] = relations;
  if (relation === undefined) return { form: formOf(field, context), value: planField(field, context.scope) };
  const related = context.findRelation(relation.name, relation.found);
  const { form, value } = planPart({ relations: below, field }, related.context);
  const from = related.subquery;
  if (form !== "tsvector") return { form: "text", value: { kind: "joined", value, from } };
  if (!related.toOne) throw notSearchable(relation.name, field.name);
  return { form, value: { kind: "lookup", value, from } };
}

function formOf(field: FieldReference, { scope }: SelectionContext): PlannedPart["form"] {
  if (isPlainText(field, scope)) return "text";
  const type = typeOfField(field.name, scope);
  const name = type && baseTypeOf(type).name;
  if (name === "json" || name === "jsonb" || field.path.length > 0) return "json";
  return name === "tsvector" ? name : "other";
}

function searchMissing(field: string, { name, at }: Measure): ApiError {
  return new ApiError("invalid", "PGRST183", `There is no search for '${field}.${name}()' (column ${at})`, {
    details: "Without words, it concerns those of the parameter 'search' for the same rows.",
    hint: `Send search=(…).wfts.words, or ${field}.${name}(wfts.words).`,
  });
}

function notHighlighted(field: string, { at }: Measure): ApiError {
  return new ApiError("invalid", "PGRST183", `'${field}' has no text to highlight (column ${at})`, {
    details: "The type tsvector does not have the original text.",
    hint: "Highlight the column that it is made of.",
  });
}

function tooFar(relations: SearchedField["relations"], field: string): ApiError {
  const path = [...relations.map(({ name }) => name), field].join(".");
  return new ApiError("invalid", "PGRST183", `'${path}' cannot be searched`, {
    details: `At most ${MAX_SEARCHED_RELATIONS} relations may lead to a searched field.`,
    hint: "Search a column of a nearer table, or a view.",
  });
}

function notSearchable(relation: string, field: string): ApiError {
  return new ApiError("invalid", "PGRST183", `'${relation}.${field}' cannot be searched`, {
    details: "Values of the type tsvector cannot be joined over several rows.",
    hint: "Search the texts that it is made of.",
  });
}
