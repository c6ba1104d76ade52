import { hash } from "node:crypto";
import pg from "pg";
import { type Lsn, parseLsn } from "#postgres/database";
import type { StreamHistory } from "./changes.ts";

const ID_LENGTH = 8;
const NO_BOUND: Lsn = 2n ** 64n;
const UNDEFINED_FILE = "58P01";
const HISTORY_LINE = /^\s*(?<timeline>\d+)\s+(?<switchPoint>[\dA-F]+\/[\dA-F]+)/i;

/** Positions of `history` below this one are valid in the other history, too; 0 if none is. */
export function validUntil({ id, ancestors }: StreamHistory, history: string): Lsn {
  return history === id ? NO_BOUND : (ancestors.get(history) ?? 0n);
}

/** Reads the history of the server of a replication connection. */
export async function readStreamHistory(client: pg.Client): Promise<StreamHistory> {
  const { rows } = await client.query<{ systemid: string; timeline: number | string }>("IDENTIFY_SYSTEM");
  const { systemid } = rows[0]!;
  // An int8 since Postgres 15.
  const timeline = Number(rows[0]!.timeline);
  return toStreamHistory(systemid, timeline, timeline === 1 ? "" : await readHistoryFile(client, timeline));
}

/** `file` is the timeline's history file: a line for each ancestor, the first one first. */
export function toStreamHistory(systemId: string, timeline: number, file: string): StreamHistory {
  const ancestors = new Map<string, Lsn>();
  let path = systemId;
  for (const line of file.split("\n")) {
    const { timeline: ancestor, switchPoint } = HISTORY_LINE.exec(line)?.groups ?? {};
    if (!ancestor || !switchPoint) continue;
    ancestors.set(historyId(`${path}/${ancestor}`), parseLsn(switchPoint)!);
    path += `/${ancestor}@${switchPoint}`;
  }
  return { id: historyId(`${path}/${timeline}`), timeline, ancestors };
}

async function readHistoryFile(client: pg.Client, timeline: number): Promise<string> {
  try {
    const { rows } = await client.query<{ content: unknown }>(`TIMELINE_HISTORY ${timeline}`);
    return String(rows[0]!.content);
  } catch (error) {
    // If the file is missing, no ancestor is known, and positions of earlier timelines are invalid.
    if (error instanceof pg.DatabaseError && error.code === UNDEFINED_FILE) return "";
    throw error;
  }
}

function historyId(path: string): string {
  return hash("sha256", path, "hex").slice(0, ID_LENGTH);
}
