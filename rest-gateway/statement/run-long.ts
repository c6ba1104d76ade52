import type { Abort } from "../../engine/abort.ts";
import type { Database } from "../../engine/database/database.ts";
import { isTooLarge } from "../../engine/database/faults.ts";
import type { Context, Row, Statement } from "../../engine/database/statement.ts";
import type { Chunk } from "../../engine/database/stream.ts";
import { type LongPlan, MOST_ROWS } from "./plan/long.ts";
import type { LongRead, Prepared } from "./prepare.ts";
import { type Answer, toAnswer } from "./query/answer.ts";
import { frameOf } from "./query/body.ts";
import { RowFlow, type Size } from "./row-flow.ts";

/** What Postgres tells. While rows are still coming their number may be unknown. */
export type Told<Body = string | Buffer | RowFlow> = Omit<Answer, "body" | "page"> & {
  readonly body: Body | null;
  readonly page: number | null;
};

type PreparedRead = Pick<Prepared, "plan"> & { readonly long: LongRead };

type Means = { readonly before: Statement | undefined; readonly signal: Abort };

/** An answer of more bytes is not held a second time. */
const MOST_BYTES = 2 * 2 ** 20;

/**
 * Has the whole answer put together by Postgres, which is fastest, where the latest one of its shape was short. If it
 * turns out to be long, and the next time at once, its rows are taken as they come.
 */
export async function runLong(read: PreparedRead, context: Context, database: Database, means: Means): Promise<Told> {
  const { probe, memory } = read.long;
  // Whose answer may be short this time is not kept waiting by those who read slowly.
  if (memory.wasLong && hasRoom(database)) return runRows(read, context, database, means);
  const { before, signal } = means;
  let row: Row<string | Buffer | null>;
  try {
    const options = { before, signal, readOnly: true, largeValues: "buffer" } as const;
    row = (await database.run(context, probe, options)).rows[0]!;
  } catch (error) {
    // Too large to be held, but not to be sent row by row.
    if (isTooLarge(error)) return runRows(read, context, database, means);
    throw error;
  }
  const answer = toAnswer(row, read.plan);
  memory.wasLong = isLong({ rows: answer.page, bytes: answer.body?.length ?? 0 });
  return answer.page > MOST_ROWS ? runRows(read, context, database, means) : answer;
}

function hasRoom(database: Database): boolean {
  const { inFlight, waiting, most } = database.state().lanes.stream;
  return inFlight + waiting < most;
}

async function runRows(read: PreparedRead, context: Context, database: Database, means: Means): Promise<Told> {
  const { plan, rows, memory } = read.long;
  const frame = frameOf(plan);
  const chunks = database.stream(context, rows(), { ...means, separator: frame.separator });
  const first: Chunk = (await chunks.next()).value!;
  memory.wasLong = !first.last;
  // What stands beside a row is not told where there is none.
  if (!first.head) return runLong(read, context, database, means);
  const said = toAnswer([null, String(first.rows), ...first.head], plan);
  if (first.last) {
    return { ...said, body: Buffer.concat([Buffer.from(frame.opening), first.data, Buffer.from(frame.closing)]) };
  }
  const onEnd = (size: Size) => {
    memory.wasLong = isLong(size);
  };
  return { ...said, page: pageOf(plan, said.total), body: new RowFlow({ first, chunks, frame, onEnd }) };
}

function isLong({ rows, bytes }: Size): boolean {
  return rows > MOST_ROWS || bytes > MOST_BYTES;
}

/** How many rows will have come; null where not all have been counted. */
function pageOf({ rows, total }: LongPlan, counted: number | null): number | null {
  if (counted === null || (total.kind === "counted" && total.most === counted)) return null;
  return Math.min(Math.max(counted - rows.offset, 0), rows.limit ?? counted);
}
