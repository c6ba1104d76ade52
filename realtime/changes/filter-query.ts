import type { Table } from "../../engine/catalog/tables.ts";
import type { Statement } from "../../engine/database/statement.ts";
import { quotedName } from "../../engine/quoted-name.ts";
import { comparison, type Question } from "./question.ts";
import { fromImages, type Image, spellImages } from "./row-images.ts";
import type { Answers, Truth } from "./row-test.ts";

/** Has Postgres hold rows against filters: rows that were found visible before, since an error or a delay tells of a row, too. */
export function filterQuery(table: Table, questions: readonly Question[], images: readonly Image[]): Statement {
  const values = [spellImages(images, table)];
  const answers = [...questionLists(questions)].map(([, list]) => {
    const { column, operator } = list[0]!;
    values.push(JSON.stringify(list.map(({ value }) => value)));
    const compared = comparison(quotedName(table.name, column), operator, "value", table.columns.get(column)!);
    return `(select json_agg(${compared} order by number) from json_array_elements_text($${values.length}::json) with ordinality as "$values" (value, number))`;
  });
  return { text: `select ${answers.join(", ")}\n${fromImages(table, images)}`, values };
}

/** Reads a row of the result: what it says of each of these questions, or of another one that asks the same. */
export function answerReader(questions: readonly Question[]): (row: readonly (string | null)[]) => Answers {
  const places = new Map<string, readonly [list: number, number: number]>();
  for (const [list, [, same]] of [...questionLists(questions)].entries()) {
    for (const [number, question] of same.entries()) places.set(questionKey(question), [list, number]);
  }
  const placeOf = new Map(questions.map((question) => [question, places.get(questionKey(question))!]));
  return (row) => {
    const answers = row.map((list) => JSON.parse(list!) as Truth[]);
    return (question) => {
      const place = placeOf.get(question);
      return place ? answers[place[0]]![place[1]]! : null;
    };
  };
}

function questionKey({ column, operator, value }: Question): string {
  return JSON.stringify([column, operator, value]);
}

/** One sub-select answers all that is asked of a column by one operator, so that few statements differ. */
function questionLists(questions: readonly Question[]): ReadonlyMap<string, readonly Question[]> {
  const distinct = [...new Map(questions.map((question) => [questionKey(question), question])).values()];
  return Map.groupBy(distinct, ({ column, operator }) => JSON.stringify([column, operator]));
}
