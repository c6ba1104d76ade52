import type {
  FieldReference,
  FilterOperation,
  OrderTerm,
  RowCondition,
  SelectItem,
} from "../../../../planner/intent/intent.ts";

// The grammar the other way round: an intent as a client would write it.

export function printSelect(items: readonly SelectItem[]): string {
  return items.map(printItem).join();
}

function printItem(item: SelectItem): string {
  const alias = item.alias === null ? "" : `${quoted(item.alias)}:`;
  if (item.kind === "relation") {
    const hint = item.hint === null ? "" : `!${quoted(item.hint)}`;
    const join = item.join === null ? "" : `!${item.join}`;
    return `${item.spread ? "..." : alias}${quoted(item.name)}${hint}${join}(${printSelect(item.select)})`;
  }
  const { field, aggregate } = item;
  const name = field === null ? "" : `${printField(field)}${printCast(item.cast)}${aggregate === null ? "" : "."}`;
  return `${alias}${name}${aggregate === null ? "" : `${aggregate.name}()${printCast(aggregate.cast)}`}`;
}

export function printField({ name, path }: FieldReference): string {
  const steps = path.map(({ arrow, key }) => arrow + (typeof key === "number" ? key : quoted(key)));
  return quoted(name) + steps.join("");
}

function printCast(type: string | null): string {
  return type === null ? "" : `::${type}`;
}

export function printOrder(terms: readonly OrderTerm[]): string {
  return terms.map(printTerm).join();
}

function printTerm({ field, relation, direction, nulls }: OrderTerm): string {
  const subject = relation === null ? printField(field) : `${quoted(relation)}(${printField(field)})`;
  return subject + (direction === null ? "" : `.${direction}`) + (nulls === null ? "" : `.nulls${nulls}`);
}

/** Within a tree values are quoted; as the value of a parameter they stand as they are. */
export function printCondition(condition: RowCondition): string {
  const not = condition.negated ? "not." : "";
  if (condition.kind === "filter")
    return `${printField(condition.field)}.${not}${printOperation(condition.operation, quoted)}`;
  if (condition.kind === "related") return `${not}${quoted(condition.relation)}.${printCondition(condition.condition)}`;
  if (condition.kind === "row" || condition.kind === "search") throw new TypeError("No logic tree has it");
  return `${not}${condition.kind}(${condition.conditions.map(printCondition).join()})`;
}

export function printOperation(operation: FilterOperation, print: (value: string) => string): string {
  switch (operation.kind) {
    case "compare": {
      const quantifier = operation.quantifier === null ? "" : `(${operation.quantifier})`;
      return `${operation.operator}${quantifier}.${print(operation.value)}`;
    }
    case "in":
      return `in.(${operation.values.map(quoted).join()})`;
    case "is":
      return `is.${operation.value}`;
    case "isdistinct":
      return `isdistinct.${print(operation.value)}`;
    case "search": {
      const language = operation.language === null ? "" : `(${operation.language})`;
      return `${operation.operator}${language}.${print(operation.value)}`;
    }
  }
}

export function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}
