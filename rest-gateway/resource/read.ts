import type { SelectItem } from "#planner/intent";
import { parseJsonExactly, toAddressText } from "#runtime/json";
import { ambiguousRow, rowNotFound } from "./collections/errors.ts";
import { makeReadIntent, parentConditions, rowConditions } from "./intents.ts";
import type { ResourceOperation, RunRows } from "./operation.ts";
import { selectEveryField } from "./parse/fields.ts";
import { cachedListParameters, parseRowParameters, windowOf } from "./parse/parameters.ts";
import type { ResourceRequest } from "./parse/request.ts";
import { respondWithList, respondWithRow, withLinks } from "./respond.ts";

export function readList(resource: ResourceRequest): ResourceOperation {
  const { collection, nested, parents } = resource.target;
  const parameters = cachedListParameters(resource);
  const { select, conditions, order, paging, links } = parameters;
  const query = {
    select,
    conditions: [...parentConditions(nested, parents), ...conditions],
    order,
    window: windowOf(paging),
  };
  return {
    intent: makeReadIntent(collection, query, paging.kind === "plain" ? null : "exact"),
    planKey: parents.length === 0 ? parameters : undefined,
    respond: async ({ text, count, total }, run) => {
      // If there are rows, the parent row exists.
      if (count === 0) await readParent(resource, run);
      const isLinked = links || resource.negotiated.links;
      const data = isLinked ? await withLinks(text, collection, resource, run) : text;
      return respondWithList(resource, { data, total, paging });
    },
  };
}

export function readRow(resource: ResourceRequest): ResourceOperation {
  const { collection, key, nested, parents } = resource.target;
  const { select, links } = parseRowParameters(resource.parameters, parameterContext(resource));
  const conditions = rowConditions({ collection, key: key!, nested }, parents);
  const isPlain = parents.length === 0 && select === selectEveryField(collection);
  return {
    intent: makeReadIntent(collection, { select, conditions }),
    planKey: isPlain ? select : undefined,
    respond: async (rows, run) => {
      if (rows.count === 0) throw rowNotFound(collection);
      if (rows.count > 1) throw ambiguousRow();
      const text = onlyRow(rows.text);
      const linked = links || resource.negotiated.links ? await withLinks(text, collection, resource, run) : null;
      return respondWithRow(resource, { status: 200, text, collection, select, linked });
    },
  };
}

/** Returns the only row of a JSON array, unchanged. */
export function onlyRow(array: string): string {
  return array.slice(1, -1);
}

export function parameterContext({ target: { collection }, collections }: ResourceRequest) {
  return { collection, collections };
}

/**
 * Reads the parent row in the path: the values by which the nested rows refer to it, under the names of their own columns.
 * Throws if there is no such row.
 */
export async function readParent({ target }: ResourceRequest, run: RunRows): Promise<ReadonlyMap<string, string>> {
  const { parents, nested } = target;
  const parent = parents.at(-1);
  if (!parent || !nested) return new Map();
  const { columns } = nested.relationship;
  const conditions = rowConditions(parent, parents.slice(0, -1));
  const { text } = await run(makeReadIntent(parent.collection, { select: columns.map(toSelectedColumn), conditions }));
  const [row] = parseJsonExactly(text) as Readonly<Record<string, unknown>>[];
  if (!row) throw rowNotFound(parent.collection);
  return new Map(columns.map(({ source, target }) => [target, toAddressText(row[source])]));
}

function toSelectedColumn({ source }: { readonly source: string }): SelectItem {
  return { kind: "column", field: { name: source, path: [] }, alias: null, cast: null, aggregate: null };
}
