import type {} from "postgraphile";
import { listOfCodec, TYPES } from "postgraphile/@dataplan/pg";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      LinePlugin: true;
    }
  }
}

const LINE = { ...TYPES.line, fromPg: readLine } satisfies Codec;
const CODECS: Readonly<Record<string, Codec>> = { line: LINE, _line: listOfCodec(LINE, { name: "line[]" }) };

export const LinePlugin: GraphileConfig.Plugin = {
  name: "LinePlugin",
  description:
    "A line is told by two of its points; core tells another one if it is level, upright or through the origin",
  before: ["PgCodecsPlugin"],
  gather: {
    hooks: {
      pgCodecs_findPgCodec(_info, event) {
        const { typname } = event.pgType;
        if (event.pgCodec || event.pgType.getNamespace()?.nspname !== "pg_catalog") return;
        event.pgCodec = CODECS[typname] ?? null;
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const name = build.inflection.builtin("Line");
          build.setGraphQLTypeForPgCodec(LINE, "output", name);
          build.setGraphQLTypeForPgCodec(LINE, "input", build.inflection.inputType(name));
          return _;
        },
      },
    },
  },
};

/** `{A,B,C}`, where Ax + By + C = 0: the point next to the origin, and one further along. */
function readLine(text: string) {
  const [a = 0, b = 0, c = 0] = text.slice(1, -1).split(",").map(Number);
  const square = a * a + b * b;
  const [x, y] = [(-a * c) / square, (-b * c) / square];
  return { a: { x, y }, b: { x: x - b, y: y + a } };
}
