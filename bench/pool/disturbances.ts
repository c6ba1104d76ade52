import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { startOurs } from "../comparison/ours.ts";
import { TOKENS } from "../comparison/tokens.ts";
import type { BenchOptions } from "../measuring/kind.ts";
import { ITEMS, OWNERS } from "../measuring/schema.ts";
import type { Scratch } from "../measuring/scratch.ts";
import { type Client, describeClient, runClients } from "./clients.ts";

const USER = TOKENS.cached[0]!;
const READERS = 12;
/** The lock lasts longer than any request waits for it. */
const LOCKED_SECONDS = 15;
/** The time after which no effect of a scene remains. */
const REST_MS = 3_000;

type Scene = {
  readonly title: string;
  readonly seconds: number;
  readonly disturbers: readonly Client[];
  readonly others: readonly Client[];
  readonly locked?: string;
};

function read(name: string, perSecond: number, path: Client["path"]): Client {
  return { name, perSecond, token: USER, path };
}

function write(name: string, perSecond: number, path: string, row: object): Client {
  return { name, perSecond, token: USER, method: "POST", body: JSON.stringify(row), path: () => path };
}

/** Returns paths of new statements: the names of the columns are part of the text. */
function newStatements(prefix: string): Client["path"] {
  const columns = ["id", "title", "body", "created_at", "owner_id"];
  return (index) => {
    const chosen = columns.map((column, place) => `${prefix}${index}_${place}:${column}`);
    return `items?select=${chosen.join(",")}&id=eq.${OWNERS}`;
  };
}

const BRIEF = read("a user's brief reads", 20, (index) => `items?id=eq.${OWNERS * (index % (ITEMS / OWNERS))}`);

function usersAndStrangers(prefix: string): readonly Client[] {
  const path = newStatements(`${prefix}_anonymous`);
  return [
    BRIEF,
    read("a user's new statements", 5, newStatements(prefix)),
    { name: "new statements of another anonymous address", perSecond: 5, from: "127.0.0.2", token: null, path },
  ];
}

function slowReaders(addressOf: (index: number) => string): readonly Client[] {
  return Array.from({ length: READERS }, (_, index) => ({
    name: `slow reader ${index}`,
    perSecond: 1,
    from: addressOf(index),
    token: null,
    path: () => "rpc/nap?seconds=60",
  }));
}

const SCENES: readonly Scene[] = [
  { title: "nobody else", seconds: 5, disturbers: [], others: usersAndStrangers("a") },
  {
    title: `beside ${READERS} anonymous readers of one address, each with a slow statement every second`,
    seconds: 10,
    disturbers: slowReaders(() => "127.0.0.1"),
    others: usersAndStrangers("b"),
  },
  {
    title: `beside ${READERS} anonymous readers, each of an address of its own`,
    seconds: 10,
    disturbers: slowReaders((index) => `127.0.1.${index + 1}`),
    others: usersAndStrangers("c"),
  },
  {
    title: `beside a table that the same user reads and writes, locked (ACCESS EXCLUSIVE) for ${LOCKED_SECONDS} s`,
    seconds: LOCKED_SECONDS,
    locked: "comments",
    disturbers: [
      read("reads of the locked table", 20, () => `comments?item_id=eq.${OWNERS}`),
      write("writes to the locked table", 20, "comments", { item_id: OWNERS, content: "" }),
    ],
    others: [
      ...usersAndStrangers("d"),
      read("a user's slower reads", 5, () => "items?select=id&limit=10&title=like.*9*"),
      write("a user's writes", 20, "events", { kind: "bench", payload: {} }),
    ],
  },
];

/** Measures the effect of slow statements, and of a locked table, on other callers. */
export async function watchDisturbances(scratch: Scratch, { print }: Pick<BenchOptions, "print">) {
  const ours = await startOurs(scratch, scratch.url("authenticator"));
  await runClients(ours.base, [{ ...BRIEF, perSecond: 100 }], 2);
  const results = [];
  for (const { title, seconds, disturbers, others, locked } of SCENES) {
    const unlock = locked === undefined ? async () => {} : await lock(scratch, locked);
    const disturbing = runClients(ours.base, disturbers, seconds);
    const watching = runClients(ours.base, others, seconds);
    await sleep(seconds * 1_000);
    await unlock();
    const [watched] = await Promise.all([watching, disturbing]);
    print(`  ${title}`);
    for (const client of watched) print(describeClient(client));
    print("");
    results.push({ title, watched });
    await sleep(REST_MS);
  }
  await ours.stop();
  return results;
}

async function lock(scratch: Scratch, table: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: scratch.url("postgres") });
  await client.connect();
  await client.query("begin");
  await client.query(`lock table ${table} in access exclusive mode`);
  return async () => {
    await client.query("rollback");
    await client.end();
  };
}
