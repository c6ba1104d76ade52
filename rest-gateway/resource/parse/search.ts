import { baseTypeOf } from "#catalog";
import {
  type FieldReference,
  MAX_SEARCHED_RELATIONS,
  type Measure,
  type RowCondition,
  SEARCH_OPERATORS,
  type SearchedField,
  type SearchOperation,
} from "#planner/intent";
import type { FieldError } from "#runtime";
import { type Collection, type Collections, visibleNames } from "../collections/collections.ts";
import { suggestName, validationError } from "../collections/errors.ts";
import { type CollectionField, fieldNamingOf } from "../collections/fields.ts";
import { relatedTo } from "../collections/relations.ts";
import { characterFault } from "./values.ts";

export const SEARCH = "search";

/** A search such as `(title,author.name).wfts(english).cats and dogs`, with the grammar of the table interface. */
const SEARCH_TEXT = new RegExp(
  `^\\((?<fields>.+?)\\)\\.(?<operator>${SEARCH_OPERATORS.join("|")})(?:\\((?<language>[\\p{L}\\d_ $]+)\\))?\\.(?<words>.*)$`,
  "su",
);
const FORM = `It must have the form (field,field).operator.words, with one of the operators ${SEARCH_OPERATORS.join(", ")}.`;

const TOO_FAR = `At most ${MAX_SEARCHED_RELATIONS} relations may lead to a searched field.`;

export type Search = {
  readonly condition: RowCondition;
  readonly results: SearchResults;
};
/** The values that the search adds to the fields of a row, by name: fields of the collection take precedence. */
export type SearchResults = ReadonlyMap<string, FieldReference & { readonly measure: Measure }>;

/** Returns true if the collection can be searched: filters of this name take precedence, and the planner ranks columns of this name. */
export function isSearchable({ fields, references, searches, table }: Collection): boolean {
  const isFilter = references.some(({ name }) => name === SEARCH) || searches.some((each) => each.parameter === SEARCH);
  const isColumn = table.columns.has(SEARCH) || table.computedColumns.has(SEARCH);
  return !isFilter && !isColumn && fields.some(({ readable }) => readable);
}

/** Parses a search. Its names are those of fields and of relations of the version. */
export function parseSearch(text: string, collection: Collection, collections: Collections): Search {
  const fault = characterFault(text);
  if (fault) throw invalidSearch(`It ${fault}.`);
  const { fields, operator, language, words } = SEARCH_TEXT.exec(text)?.groups ?? {};
  if (fields === undefined) throw invalidSearch(FORM);
  const operation: SearchOperation = {
    kind: "search",
    operator: operator as SearchOperation["operator"],
    language: language?.trim() || null,
    value: words!,
  };
  const found = fields.split(",").map((path) => findField(path, collection, collections));
  return {
    condition: { kind: "search", negated: false, fields: found.map(({ searched }) => searched), operation },
    results: resultsOf(found, collection, collections.version),
  };
}

type FoundField = { readonly searched: SearchedField; readonly field: CollectionField };

function findField(path: string, collection: Collection, collections: Collections): FoundField {
  const relations: SearchedField["relations"][number][] = [];
  let at = collection;
  let rest = path;
  for (;;) {
    const field = at.fields.find(({ readable, name }) => readable && name === rest);
    if (field) return { field, searched: { relations, field: { name: field.column.name, path: [] } } };
    const dot = rest.indexOf(".");
    const name = rest.slice(0, Math.max(dot, 0));
    const relation = relatedTo(at, name);
    const target = relation && collections.find(relation.target);
    if (!target) throw unknownField(path, rest, visibleNames(at, collections));
    if (relations.length === MAX_SEARCHED_RELATIONS) throw invalidSearch(TOO_FAR);
    relations.push({ name, found: relation.relationship });
    at = target;
    rest = rest.slice(dot + 1);
  }
}

/** Returns the results: `rank`, `highlight` of all texts, and `title_highlight` of one. */
function resultsOf(found: readonly FoundField[], collection: Collection, version: number): SearchResults {
  const results = new Map<string, FieldReference & { readonly measure: Measure }>();
  const spell = fieldNamingOf(version);
  const taken = [...collection.fields, ...collection.references, ...collection.nested].map(({ name }) => name);
  const add = (name: string, field: string, measure: "rank" | "highlight") => {
    if (taken.includes(name)) return;
    results.set(name, { name: field, path: [], measure: { name: measure, operation: null, at: 1 } });
  };
  add("rank", SEARCH, "rank");
  const texts = found.filter(({ field }) => baseTypeOf(field.column.type).name !== "tsvector");
  if (texts.length > 0) add("highlight", SEARCH, "highlight");
  for (const { field, searched } of texts) {
    if (searched.relations.length === 0) add(spell(`${field.name}_highlight`), field.column.name, "highlight");
  }
  return results;
}

function unknownField(path: string, rest: string, names: readonly string[]) {
  return invalidSearch(`Unknown field ${JSON.stringify(path)}.${suggestName(rest, names)}`);
}

function invalidSearch(message: string) {
  const fault: FieldError = { field: SEARCH, message };
  return validationError([fault]);
}
