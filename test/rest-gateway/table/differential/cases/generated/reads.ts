import fc from "fast-check";
import { get } from "../../case.ts";
import { CASTS, columnOf, filterOf, sometimes, TABLES, treeOf } from "./vocabulary.ts";

function columnItem(table: string): fc.Arbitrary<string> {
  return columnOf(table).chain(([column, kind]) =>
    fc
      .tuple(
        sometimes(fc.constantFrom("alias", "an alias", "x-y"), 4),
        kind === "json" ? fc.constantFrom("", "->size", "->size->>width", "->media->0") : fc.constant(""),
        sometimes(fc.constantFrom(...(kind === "number" ? CASTS : ["text"])), 4),
      )
      .map(([alias, path, cast]) => `${alias ? `${alias}:` : ""}${column}${path}${cast ? `::${cast}` : ""}`),
  );
}

/** A select list, and the parameters that order its rows, so that the answer is determined. */
type Selected = { readonly text: string; readonly parameters: readonly string[] };

export function selection(table: string, depth: number): fc.Arbitrary<Selected> {
  const columns = fc.oneof(
    { weight: 1, arbitrary: fc.constant(["*"]) },
    { weight: 4, arbitrary: fc.uniqueArray(columnItem(table), { minLength: 1, maxLength: 4, selector: outputName }) },
  );
  const relations = Object.keys(TABLES[table]!.relations);
  const embeds =
    depth === 0 || relations.length === 0
      ? fc.constant([])
      : fc.uniqueArray(embed(table, depth), { maxLength: 2, selector: ({ relation }) => relation });
  return fc.tuple(columns, embeds).map(([items, embedded]) => ({
    text: [...items, ...embedded.map(({ text }) => text)].join(","),
    parameters: embedded.flatMap(({ parameters }) => parameters),
  }));
}

function embed(table: string, depth: number): fc.Arbitrary<Selected & { readonly relation: string }> {
  return fc.constantFrom(...Object.entries(TABLES[table]!.relations)).chain(([name, { to, many }]) =>
    fc
      .tuple(
        selection(to, depth - 1),
        sometimes(fc.constant(`the_${name.split("!")[0]}`), 3),
        fc.constantFrom("", "", "!inner", "!left"),
        sometimes(filterOf(to), 3),
        sometimes(fc.integer({ min: 0, max: 2 }), 3),
      )
      .map(([{ text, parameters }, alias, join, filter, limit]) => {
        const place = alias ?? name.split("!")[0]!;
        return {
          relation: name,
          text: `${alias ? `${alias}:` : ""}${name}${join}(${text})`,
          parameters: [
            ...(many ? [`${place}.order=${TABLES[to]!.key}`] : []),
            ...(many && limit !== null ? [`${place}.limit=${limit}`] : []),
            ...(filter ? [`${place}.${filter[0]}=${filter[1]}`] : []),
            ...parameters.map((parameter) => `${place}.${parameter}`),
          ],
        };
      }),
  );
}

export const reading = fc.constantFrom(...Object.keys(TABLES)).chain((table) =>
  fc
    .record({
      select: selection(table, 2),
      filters: fc.oneof(fc.constant<[string, string][]>([]), fc.array(filterOf(table), { maxLength: 2 })),
      tree: sometimes(
        fc.tuple(
          fc.constantFrom("or", "and", "not.or", "not.and"),
          fc.array(treeOf(table, 1), { minLength: 1, maxLength: 3 }),
        ),
        3,
      ),
      order: sometimes(
        fc.tuple(columnOf(table), fc.constantFrom("", ".desc", ".asc", ".nullsfirst", ".desc.nullslast")),
        2,
      ),
      limit: sometimes(fc.integer({ min: 0, max: 9 }), 2),
      offset: sometimes(fc.integer({ min: 0, max: 3 }), 3),
      prefer: sometimes(fc.constantFrom("count=exact"), 2),
    })
    .map(({ select, filters, tree, order, limit, offset, prefer }) => {
      const parameters = [
        `select=${select.text}`,
        ...filters.map(([column, operation]) => `${column}=${operation}`),
        ...(tree ? [`${tree[0]}=(${tree[1].join(",")})`] : []),
        `order=${order && order[0][1] !== "json" ? `${order[0][0]}${order[1]},` : ""}${TABLES[table]!.key}`,
        ...(limit === null ? [] : [`limit=${limit}`]),
        ...(offset === null ? [] : [`offset=${offset}`]),
        ...select.parameters,
      ];
      return get(`/${table}?${parameters.join("&")}`, prefer ? { prefer } : {});
    }),
);

/** A character is taken out, or some are put in. */
export const mutilated = fc
  .tuple(
    reading,
    fc.nat(),
    fc.constantFrom("", "(", ")", ".", ",", ":", "!", '"', "-", "->", "*", "::", "not.", "é", " ", "{"),
  )
  .map(([{ path: whole }, place, inserted]) => {
    const start = whole.indexOf("?") + 1;
    const at = start + (place % (whole.length - start));
    const path = whole.slice(0, at) + inserted + whole.slice(at + (inserted === "" ? 1 : 0));
    return get(path, { compared: "status and code" });
  });

/** Names in a select list must differ, or the row has one of them twice. */
function outputName(text: string): string {
  const [first = "", second] = text.split("::")[0]!.split(/(?<!:):(?!:)/);
  return second === undefined ? (first.match(/->>?([a-z]+)[^>]*$/)?.[1] ?? first) : first;
}
