import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  print,
  type SelectionSetNode,
} from "postgraphile/graphql";

/** How much larger an answer can be than the rows that it is made of. */
export type Echo = {
  /** How often one value may be told, under aliases of its field. */
  readonly times: number;
  /** What the names of fields add to each row. */
  readonly keyBytes: number;
};

const NONE: Echo = { times: 1, keyBytes: 0 };

/** `"":,` and the braces around a row. */
const PUNCTUATION = 6;

/** At least what the operation can make of its rows: what is merged, or left out by a directive, is counted too. */
export function echoOf({ selectionSet }: OperationDefinitionNode, { definitions }: DocumentNode): Echo {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const known = new Map<string, Echo>();

  // Only the same question is answered by the same rows, so at the root each question has rows of its own.
  return [...questionsOf(selectionSet).values()].reduce(larger, NONE);

  function questionsOf(set: SelectionSetNode | undefined, found = new Map<string, Echo>()): Map<string, Echo> {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FIELD) {
        const question = selection.name.value + (selection.arguments ?? []).map(print).join();
        found.set(question, sum(found.get(question), ofField(selection)));
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        questionsOf(selection.selectionSet, found);
      } else {
        const question = `...${selection.name.value}`;
        found.set(question, sum(found.get(question), ofFragment(selection.name.value)));
      }
    }
    return found;
  }

  function ofField({ name, alias, selectionSet }: FieldNode): Echo {
    const { times, keyBytes } = ofSelections(selectionSet);
    return { times, keyBytes: keyBytes + (alias ?? name).value.length + PUNCTUATION };
  }

  function ofFragment(name: string): Echo {
    const measured = known.get(name);
    if (measured) return measured;
    known.set(name, NONE);
    const echo = ofSelections(fragments.get(name)?.selectionSet);
    known.set(name, echo);
    return echo;
  }

  function ofSelections(set: SelectionSetNode | undefined): Echo {
    let plain = 0;
    let spread = 0;
    let keyBytes = 0;
    for (const [question, echo] of questionsOf(set)) {
      // A fragment may ask what stands beside it.
      if (question.startsWith("...")) spread += echo.times;
      else plain = Math.max(plain, echo.times);
      keyBytes += echo.keyBytes;
    }
    return { times: Math.max(1, plain + spread), keyBytes };
  }
}

function sum(one: Echo | undefined, other: Echo): Echo {
  return one ? { times: one.times + other.times, keyBytes: one.keyBytes + other.keyBytes } : other;
}

function larger(one: Echo, other: Echo): Echo {
  return { times: Math.max(one.times, other.times), keyBytes: Math.max(one.keyBytes, other.keyBytes) };
}

/** What rows may become in the answer. */
export function toldBytes(rows: readonly (readonly (string | null)[])[], { times, keyBytes }: Echo): number {
  let bytes = 0;
  let count = rows.length;
  for (const row of rows) {
    for (const cell of row) {
      if (cell === null) continue;
      bytes += cell.length;
      // Rows of nested lists come as arrays within one cell.
      if (cell.startsWith("[")) for (let at = 0; at >= 0; at = cell.indexOf("[", at + 1)) count++;
    }
  }
  return bytes * times + count * keyBytes;
}
