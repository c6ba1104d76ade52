import { UNLIMITED } from "../budget.ts";
import { statementStep } from "../exchange.ts";
import type { Lane } from "../lane.ts";
import { Request } from "../request.ts";
import { Rows } from "../rows.ts";
import { Shape } from "../shape.ts";
import type { Row } from "../statement.ts";

/** What the login itself asks, as no caller; the answer has one row. Rejects when it takes longer than this. */
export function makeAskPlainly(text: string, milliseconds: number): (lane: Lane) => Promise<Row> {
  const shape = new Shape(text);
  return (lane) => {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no answer for ${milliseconds} ms`)), milliseconds);
      const inTime =
        <Value>(settle: (value: Value) => void) =>
        (value: Value) => {
          clearTimeout(late);
          settle(value);
        };
      const rows = Rows.ofStrings();
      const question = {
        pace: shape,
        context: { role: "" },
        isAnonymous: false,
        steps: [statementStep(shape, { text, values: [] }, { sync: true })],
        main: 0,
        wantsFields: false,
        patience: milliseconds,
        readOnly: true,
        allowance: UNLIMITED,
        expires: performance.now() + milliseconds,
        signal: undefined,
      };
      const answer = { resolve: inTime(() => resolve(rows.rows[0]!)), reject: inTime(reject) };
      new Request(lane, question, rows, answer).submit();
    });
  };
}
