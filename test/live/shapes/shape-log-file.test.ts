import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { openRestartedFixture, type ShapeFollower } from "./restarted-service.ts";

type Message = { key?: string; value?: { title?: string }; headers: { operation?: string } };

const SCHEMA = `
  create table public.members (team int, person text, primary key (team, person));
  create table public.tasks (id int primary key, team int not null, title text);
  alter table public.tasks enable row level security;
  create policy select_of_team on public.tasks for select
    using (exists (select from public.members m where m.team = tasks.team and person = auth.jwt() ->> 'sub'));
  grant select on public.tasks, public.members to authenticated;
  insert into public.members values (1, 'ann'), (2, 'bob');
  insert into public.tasks select n, 1 + n % 2, 'task ' || n from generate_series(1, 100) n`;

const service = useFixture(() => openRestartedFixture(SCHEMA));

const sql = (text: string) => service.owner.query(text);
const logs = () => join(service.folder, "shapes");

async function untilHas({ rows }: ShapeFollower, where: string): Promise<void> {
  const expected = (await sql(`select id, team, title from public.tasks where ${where}`)).rows
    .map((row) => JSON.stringify(row))
    .toSorted();
  await until(() => JSON.stringify(rows()) === JSON.stringify(expected));
}

test.each(["SIGTERM", "SIGKILL"] as const)(
  "after a restart by %s clients get what has changed, and nothing else, with events and without",
  async (signal) => {
    const clients = [false, true].map((liveSse) => service.follow({ table: "tasks", claims: { sub: "ann" }, liveSse }));
    const untilAllHave = () => Promise.all(clients.map((client) => untilHas(client, "team = 1")));
    await untilAllHave();
    await sql("update public.tasks set title = title || ' one' where id in (1, 2, 3)");
    await untilAllHave();
    for (const client of clients) client.takeReceived();
    await service.restart(signal, () =>
      sql(`update public.tasks set title = title || ' two' where id = 4;
      delete from public.tasks where id = 6; insert into public.tasks values (6, 2, 'six'), (${Date.now() % 1e9}, 1, 'new')`),
    );
    await untilAllHave();
    expect(clients.map((client) => [client.takeReceived().length, client.refetches()])).toEqual([
      [2, 0],
      [2, 0],
    ]);
    await sql("update public.tasks set title = 'six', team = 1 where id = 6");
    await untilAllHave();
    expect(clients.map((client) => client.refetches())).toEqual([0, 0]);
  },
);

test("rows that the caller may read no more leave after a restart, and none is sent that it may not read", async () => {
  const [ann, bob] = ["ann", "bob"].map((sub) => service.follow({ table: "tasks", claims: { sub } })) as [
    ShapeFollower,
    ShapeFollower,
  ];
  await untilHas(ann, "team = 1");
  await untilHas(bob, "team = 2");
  for (const each of [ann, bob]) each.takeReceived();
  await service.restart("SIGKILL", () =>
    sql(`delete from public.members where person = 'ann'; insert into public.members values (2, 'ann');
      insert into public.tasks values (1001, 1, 'hidden');
      create policy not_some on public.tasks as restrictive for select using (id > 10)`),
  );
  await untilHas(ann, "team = 2 and id > 10");
  await untilHas(bob, "team = 2 and id > 10");
  expect(ann.takeReceived().filter((row) => !ann.rows().includes(row))).toEqual([]);
  expect([bob.takeReceived(), ann.refetches(), bob.refetches()]).toEqual([[], 0, 0]);
  await sql("drop policy not_some on public.tasks; update public.members set team = 1 where person = 'ann'");
});

test("a later token of the account continues, and another account does not", async () => {
  const request = async (query: string, sub: string, session: number) => {
    const headers = service.headersOf({ sub, session });
    const response = await fetch(`${service.program().url}/v1/shape?table=tasks&${query}`, { headers });
    return { response, body: (await response.json()) as Message[] };
  };
  const { response: first } = await request("offset=-1", "ann", 1);
  const [handle, offset] = ["handle", "offset"].map((name) => first.headers.get(`electric-${name}`)!);
  await service.restart("SIGTERM", () => sql("insert into public.tasks values (2001, 1, 'later')"));
  const again = `handle=${handle}&offset=${offset}`;
  expect((await request(again, "bob", 2)).response.status).toBe(409);
  const { response, body } = await request(again, "ann", 2);
  expect([response.status, response.headers.get("electric-handle")]).toEqual([200, handle]);
  expect(body.flatMap(({ headers }) => headers.operation ?? [])).toEqual(["insert"]);
});

test("after a subset of rows, a client of changes continues too", async () => {
  const ann = service.follow({ table: "tasks", claims: { sub: "ann" }, log: "changes_only" });
  await ann.stream.requestSnapshot({ where: "id < 50" });
  await untilHas(ann, "team = 1 and id < 50");
  await service.restart("SIGKILL", () => sql("update public.tasks set title = 'changed' where id = 20"));
  await untilHas(ann, "team = 1 and id < 50");
  await ann.stream.requestSnapshot({ where: "id < 60" });
  await untilHas(ann, "team = 1 and id < 60");
  expect(ann.refetches()).toBe(0);
});

test("a file that was damaged, shortened or deleted has the client begin anew", async () => {
  const ann = service.follow({ table: "tasks", where: "id > 5", claims: { sub: "ann" } });
  await untilHas(ann, "team = 1 and id > 5");
  await sql("update public.tasks set title = 'before' where id = 8");
  await untilHas(ann, "team = 1 and id > 5");
  await service.restart("SIGKILL", async () => {
    for (const name of await readdir(logs())) {
      const path = join(logs(), name);
      const text = await readFile(path, "utf8");
      await writeFile(path, text.replace("before", "behind"));
    }
    await sql("update public.tasks set title = 'after' where id = 8");
  });
  await untilHas(ann, "team = 1 and id > 5");
  expect(ann.refetches()).toBe(1);
  await service.restart("SIGKILL", async () => {
    for (const name of await readdir(logs())) {
      const path = join(logs(), name);
      await writeFile(path, (await readFile(path, "utf8")).slice(0, -1));
    }
    await sql("update public.tasks set title = 'later' where id = 8");
  });
  await untilHas(ann, "team = 1 and id > 5");
  expect(ann.refetches()).toBe(2);
});

test("nobody else may read the files", async () => {
  const modes = await Promise.all(
    [logs(), ...(await readdir(logs())).map((name) => join(logs(), name))].map(async (path) => (await stat(path)).mode),
  );
  expect(modes.map((mode) => (mode & 0o777).toString(8))).toEqual(["700", ...modes.slice(1).map(() => "600")]);
});

test("workers continue each other's shapes", async () => {
  const workers = await openRestartedFixture(SCHEMA, { WEB_CONCURRENCY: "2" });
  try {
    const rows = new Map<string, string>();
    let query = "offset=-1";
    let requests = 0;
    /** Requests changes on a connection of its own, which either worker gets. */
    const next = async () => {
      const headers = { ...workers.headersOf({ sub: "ann" }), connection: "close" };
      const response = await fetch(`${workers.program().url}/v1/shape?table=tasks&${query}`, { headers });
      expect(response.status).toBe(200);
      requests++;
      const messages = (await response.json()) as Message[];
      for (const {
        key,
        value,
        headers: { operation },
      } of messages) {
        if (operation === "delete") rows.delete(key!);
        else if (value?.title !== undefined) rows.set(key!, value.title);
      }
      query = `handle=${response.headers.get("electric-handle")}&offset=${response.headers.get("electric-offset")}`;
    };
    await next();
    expect(rows.size).toBe(50);
    for (let number = 0; number < 20; number++) {
      await workers.owner.query(`update public.tasks set title = 'title ${number}' where id in (2, 4)`);
      do await next();
      while ([...rows.values()].filter((title) => title === `title ${number}`).length < 2);
    }
    expect(requests).toBeGreaterThan(20);
  } finally {
    await workers.close();
  }
});
