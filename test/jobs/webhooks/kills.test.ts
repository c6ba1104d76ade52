import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { type Program, startGateway } from "../../program.ts";
import { propertyRuns } from "../../property-runs.ts";
import { until } from "../../until.ts";
import { type ReceivedRequest, type Receiver, startReceiver } from "./receiver.ts";

const KEYS = 30;
const RUNS = 200;
/** Each starts a process, so there are fewer of them than of other runs unless all are run: one of each step. */
const KILLS = Math.max(7, Math.round(propertyRuns(RUNS) ** 2 / RUNS));
/** After one kill in so many the lease ends by itself, not by a statement. */
const EVERY_REAL_LEASE = 25;

type GatewayName = "first" | "second";
type Row = { readonly id: number; readonly number: number };

const gateways = new Map<GatewayName, Promise<Program>>();
const history = makeHistory();
const figures = { requests: 0, repeated: 0 };

const database = useDatabase({ template: "platform" });
const receiver = useFixture(startReceiver);
beforeAll(async () => {
  receiver.respond = (response, request) => {
    history.receive(request);
    history.acknowledge(request);
    response.end();
  };
});
const client = useFixture(() => connect());
const locker = useFixture(() => connect());
beforeAll(async () => {
  await client.query("create table public.orders (id int primary key, number int not null)");
  await client.query(`insert into public.orders select id, 0 from generate_series(1, ${KEYS}) id`);
  await client.query("grant select on public.orders to service_role");
  await client.query(
    "insert into api.webhooks (name, table_name, events, url, role, max_attempts) values ('orders', 'public.orders', '{UPDATE}', $1, 'service_role', 100)",
    [receiver.url],
  );
  await Promise.all([start("first"), start("second")]);
});
afterAll(async () => {
  for (const gateway of gateways.values()) await (await gateway).kill();
});

async function connect(): Promise<pg.Client> {
  const opened = new pg.Client({ connectionString: database.ownerUrl });
  await opened.connect();
  return opened;
}

function start(name: GatewayName): Promise<Program> {
  // Locks are found by the name of the application.
  const ownerUrl = `${database.ownerUrl}&application_name=${name}`;
  const gateway = startGateway(
    { url: database.url, ownerUrl },
    { BASE_SCHEMA: "platform", WEBHOOK_NETWORK: "loopback" },
  );
  gateways.set(name, gateway);
  return gateway;
}

/** Records the requests of the receiver, and checks the rules for each. */
function makeHistory() {
  const ids = new Map<string, string>();
  const events = new Map<string, string>();
  const acknowledged = new Map<number, number>();
  const faults: string[] = [];
  const rowOf = ({ body }: ReceivedRequest): Row => JSON.parse(body).record;
  return {
    faults,
    acknowledged: (id: number) => acknowledged.get(id) ?? 0,
    receive(request: ReceivedRequest) {
      const { id, number } = rowOf(request);
      const event = `${id}:${number}`;
      figures.requests++;
      const earlier = ids.get(event);
      if (earlier !== undefined) figures.repeated++;
      if (earlier !== undefined && earlier !== request.id) faults.push(`${event} had two ids`);
      if ((events.get(request.id) ?? event) !== event) faults.push(`${event} had the id of another event`);
      events.set(request.id, event);
      ids.set(event, request.id);
      if (number > (acknowledged.get(id) ?? 0) + 1)
        faults.push(`${event} was sent before the one before it was received`);
    },
    acknowledge(request: ReceivedRequest) {
      const { id, number } = rowOf(request);
      acknowledged.set(id, Math.max(number, acknowledged.get(id) ?? 0));
    },
  };
}

/** Changes some of the rows, each of them several times. */
async function write(by = client): Promise<void> {
  for (let statements = 0; statements < 4; statements++) {
    await by.query("update public.orders set number = number + 1 where id % 3 = $1", [statements % 3]);
  }
}

/** Returns the gateways that wait for a lock on the table. */
async function waiting(): Promise<readonly GatewayName[]> {
  const { rows } = await client.query<{ name: GatewayName }>(`
    select distinct application_name as name from pg_stat_activity
    where datname = current_database() and application_name in ('first', 'second') and wait_event_type = 'Lock'`);
  return rows.map(({ name }) => name);
}

/** Runs the work while nobody can read or change deliveries. */
async function whileLocked<T>(work: () => Promise<T>): Promise<T> {
  await locker.query("begin");
  await locker.query("lock table content_service.webhook_deliveries in access exclusive mode");
  try {
    return await work();
  } finally {
    await locker.query("commit");
  }
}

/** The gateway that has the lease: it looks for deliveries again and again. */
async function untilWaiting(): Promise<GatewayName> {
  let found: readonly GatewayName[] = [];
  await until(async () => {
    found = await waiting();
    return found.length > 0;
  });
  return found[0]!;
}

const findHolder = () => whileLocked(untilWaiting);

async function kill(name: GatewayName): Promise<void> {
  await (await gateways.get(name)!).kill();
}

/** Resolves when a request was answered by `respond`, after which the receiver is as before. */
async function untilRequest(respond: Receiver["respond"]): Promise<void> {
  const usual = receiver.respond;
  let isReceived = false;
  receiver.respond = (response, request) => {
    isReceived = true;
    history.receive(request);
    respond(response, request);
  };
  await write();
  await until(() => isReceived);
  receiver.respond = usual;
}

/** Each brings a gateway to the step and kills it there; it returns which gateway. */
const STEPS: Readonly<Record<string, () => Promise<GatewayName>>> = {
  "while it reads a page": () =>
    whileLocked(async () => {
      await write(locker);
      const holder = await untilWaiting();
      await kill(holder);
      return holder;
    }),

  "after it has sent, before the response": async () => {
    const holder = await findHolder();
    await untilRequest(() => {});
    await kill(holder);
    return holder;
  },

  "after the response, before it has stored that": () => killBeforeStored(true),

  "after a failure, before it has stored that": () => killBeforeStored(false),

  "while it renews its lease": async () => {
    const holder = await findHolder();
    await locker.query("begin");
    await locker.query("select from content_service.webhook_leases for update");
    await write();
    await until(async () => (await waiting()).includes(holder));
    await kill(holder);
    await locker.query("rollback");
    return holder;
  },

  "while it stops": async () => {
    const holder = await findHolder();
    await write();
    (await gateways.get(holder)!).child.kill("SIGTERM");
    await sleep(20 * Math.random());
    await kill(holder);
    return holder;
  },

  "at any time while it sends": async () => {
    const holder = await findHolder();
    const writes = Promise.all([write(), write()]);
    await sleep(80 * Math.random());
    await kill(holder);
    await writes;
    return holder;
  },
};

/** The receiver answers when nothing can be stored any more. */
async function killBeforeStored(isAccepted: boolean): Promise<GatewayName> {
  const held: (() => void)[] = [];
  await untilRequest((response, request) => {
    held.push(() => {
      if (isAccepted) history.acknowledge(request);
      response.writeHead(isAccepted ? 200 : 500).end();
    });
  });
  return whileLocked(async () => {
    for (const release of held) release();
    const holder = await untilWaiting();
    await kill(holder);
    return holder;
  });
}

async function isDrained(): Promise<boolean> {
  const { rows } = await client.query("select from content_service.webhook_deliveries limit 1");
  return rows.length === 0;
}

describe(`two gateways, of which the one that sends is killed ${KILLS} times`, () => {
  const names = Object.keys(STEPS);
  const kills = Array.from({ length: KILLS }, (_, index) => ({
    number: index + 1,
    step: names[index % names.length]!,
  }));

  test.each(kills)("kill $number: $step", async ({ number, step }) => {
    const holder = await findHolder();
    const { rows } = await client.query("select holder from content_service.webhook_leases");
    const killed = await STEPS[step]!();
    const restarted = start(killed);
    // Another one may have taken over since: then that lease ends by itself.
    if (number % EVERY_REAL_LEASE !== 0 && killed === holder && rows[0]) {
      // Ends the lease early; another holder keeps its own.
      await client.query("update content_service.webhook_leases set expires_at = clock_timestamp() where holder = $1", [
        rows[0].holder,
      ]);
    }
    await restarted;
    expect(history.faults).toEqual([]);
  });

  test("deliver every change, in the order of its row, and repeat it only with its id", async () => {
    await client.query(
      "update content_service.webhook_deliveries set due_at = clock_timestamp() where due_at is not null",
    );
    await until(isDrained);
    const { rows } = await client.query<Row>("select id, number from public.orders order by id");
    expect(rows.map(({ id }) => ({ id, number: history.acknowledged(id) }))).toEqual(rows);
    expect(rows[0]!.number).toBeGreaterThan(KILLS / 2);
    expect(history.faults).toEqual([]);
    console.log(`${KILLS} kills: ${figures.requests} requests, ${figures.repeated} of them repeated`);
  });
});
