import type { OrderTerm } from "../../../engine/statement/intent.ts";
import { takeField } from "./field.ts";
import { Scanner } from "./scanner.ts";

/** `created_at.desc.nullslast,data->>name,author(name).asc` */
export function parseOrder(text: string): readonly OrderTerm[] {
  const scanner = new Scanner("order", text);
  const terms = [readTerm(scanner)];
  while (scanner.take(",")) terms.push(readTerm(scanner));
  return terms;
}

function readTerm(scanner: Scanner): OrderTerm {
  const { relation, field } = readSubject(scanner);
  const direction = takeSuffix(scanner, "asc") ?? takeSuffix(scanner, "desc");
  const nulls = takeSuffix(scanner, "nullsfirst") ?? takeSuffix(scanner, "nullslast");
  if (!scanner.looksAt(",") && !scanner.looksDone()) scanner.fail();
  return { field, relation, direction, nulls: nulls && (nulls === "nullsfirst" ? "first" : "last") };
}

/** `created_at`, `author(name)` */
function readSubject(scanner: Scanner): Pick<OrderTerm, "relation" | "field"> {
  const start = scanner.position;
  const field = takeField(scanner) ?? scanner.fail();
  if (field.path.length === 0 && scanner.peek("(")) {
    scanner.take("(");
    const related = takeField(scanner);
    if (related !== null && scanner.take(")")) return { relation: field.name, field: related };
    scanner.moveTo(start);
    takeField(scanner);
  }
  return { relation: null, field };
}

function takeSuffix<Word extends string>(scanner: Scanner, word: Word): Word | null {
  if (scanner.peek(`.${word}`)) {
    scanner.take(`.${word}`);
    return word;
  }
  if (scanner.peek(".")) scanner.expectLiteral(word, scanner.position + 1);
  else scanner.expect("delimiter (.)");
  return null;
}
