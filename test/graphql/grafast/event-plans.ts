import { pgSelect, sideEffectWithPgClient } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { constant, context, type FieldArgs, type GrafastSubscriber, get, listen, type Step } from "grafast";
import type { FieldSource } from "../../../plugins/field-sources.ts";
import type { RowEvent } from "../../../plugins/row-events.ts";
import { type Codec, keyOf } from "../../../plugins/table.ts";

declare global {
  namespace Grafast {
    interface Context {
      /** The source of row events, by topic (`topicOf`). */
      events?: GrafastSubscriber<Record<string, RowEvent>>;
    }
  }
}

export function planEvent({ table, argument, topicFor }: Extract<FieldSource, { readonly kind: "event" }>): object {
  return {
    subscribePlan(_$root: Step, args: FieldArgs) {
      const $events = context().get("events") as Step<GrafastSubscriber<Record<string, RowEvent>>>;
      const $value = argument === null ? constant(null) : args.getRaw(argument);
      const $topic = sideEffectWithPgClient(table.executor, $value, async (client, value) =>
        topicFor(value, async (text, values) => {
          const { rows } = await client.query<string[]>({ text, values: [...values], arrayMode: true });
          return rows[0]?.[0];
        }),
      );
      return listen($events, $topic);
    },
    plan($event: Step) {
      const $keys = get($event, "k");
      const identifiers = keyOf(table)!.map((column) => ({
        step: get($keys, column),
        codec: textCodecOf(table.codec.attributes[column]!.codec),
        matches: (row: SQL) => sql`${row}.${sql.identifier(column)}`,
      }));
      return pgSelect({ resource: table, identifiers }).single();
    },
  };
}

/** Events carry keys in Postgres's text format, not in the clients'. */
function textCodecOf(codec: Codec): Codec {
  return { ...codec, toPg: (text) => text };
}
