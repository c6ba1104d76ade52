import type { Intent, RowCondition, SelectItem } from "./intent.ts";

/** `?select=title,director(name)&year=gt&order=title`, for an intent without values; leaves out aliases in `select` and JSON paths. */
export function describeIntent(intent: Intent, selectsDefault: boolean): string {
  const { selection } = intent;
  const select = selectsDefault ? "*" : describeSelect(selection.select);
  const parameters = [
    ...(select === "*" || select === "" ? [] : [`select=${select}`]),
    ...selection.conditions.map(({ value }) => describeCondition(value)),
    ...selection.orders.map(({ value }) => `order=${value.map(({ field }) => field.name).join(",")}`),
  ];
  const written = "payload" in intent ? ` {${intent.payload.columns.join(", ")}}` : "";
  const query = parameters.length > 0 ? `?${parameters.join("&")}` : "";
  return `${query}${written}`;
}

function describeSelect(select: readonly SelectItem[]): string {
  return select
    .map((item) => {
      if (item.kind === "relation") return `${item.name}(${describeSelect(item.select)})`;
      const name = item.field?.name ?? "";
      if (item.aggregate) return name === "" ? `${item.aggregate.name}()` : `${name}.${item.aggregate.name}()`;
      return name === "" ? "*" : name;
    })
    .join(",");
}

function describeCondition(condition: RowCondition): string {
  const not = condition.negated ? "not." : "";
  switch (condition.kind) {
    case "filter": {
      const { operation, field } = condition;
      const operator = "operator" in operation ? operation.operator : operation.kind;
      return `${field.name}=${not}${operator}`;
    }
    case "related":
      return `${not}related(${describeCondition(condition.condition)})`;
    case "row":
      return `${not}${condition.operation.kind}`;
    case "search":
      return `${not}search(${condition.fields.map(({ field }) => field.name).join(",")})`;
    default:
      return `${not}${condition.kind}(${condition.conditions.map(describeCondition).join(",")})`;
  }
}
