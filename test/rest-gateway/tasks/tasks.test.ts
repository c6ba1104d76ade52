import { randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import type { PoolClient } from "pg";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { newPerson, openGateways, type Person, type Sent, type TestResponse } from "../sign-in/gateways.ts";

/** Functions that a DBA might write. */
const FUNCTIONS = `
  create table public.ledger (id bigint generated always as identity primary key, note text not null, writer text);
  alter table public.ledger enable row level security;
  create policy all_all on public.ledger using (true) with check (true);
  grant select, insert on public.ledger to anon, authenticated;
  create function public.write_down(note text) returns public.ledger language sql set search_path = '' as $$
    insert into public.ledger (note, writer) values (note, auth.uid()::text) returning *
  $$;
  create table public.budgets (org numeric not null, note text not null);
  alter table public.budgets enable row level security;
  create policy insert_own on public.budgets for insert
    with check (org = (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'org')::numeric);
  grant insert on public.budgets to authenticated;
  create function public.budget(note text) returns text language sql set search_path = '' as $$
    insert into public.budgets values ((auth.jwt() ->> 'org')::numeric, note);
    select auth.jwt() ->> 'org'
  $$;
  grant execute on function public.budget to authenticated;
  create function public.take_long(gate bigint) returns text language plpgsql set search_path = '' as $$
  begin
    perform api.report_progress(10);
    perform api.report_progress(40);
    perform pg_advisory_xact_lock(gate);
    insert into public.ledger (note) values ('took long');
    return 'at last';
  end $$;
  create function public.refuse(reason text) returns void language plpgsql set search_path = '' as $$
  begin
    insert into public.ledger (note) values ('must not stay');
    raise exception '%', reason using errcode = 'WRONG', detail = 'reason';
  end $$;
  create function public.copy(ledger public.ledger) returns text language sql set search_path = '' as $$
    insert into public.ledger (note) values ('copy of ' || ledger.note) returning note
  $$;
  grant execute on function public.copy to anon, authenticated;
  create function public.digits() returns json language sql stable set search_path = '' as $$ select '{"b": 1.10, "a": 12345678901234567890}'::json $$;
  create function public.fragile() returns text language plpgsql set search_path = '' as $$
  begin
    if nextval('public.attempts') < 2 then raise serialization_failure; end if;
    return 'the second time';
  end $$;
  create function public.run_out_of_time(ledger public.ledger) returns void language plpgsql as $$
  begin
    perform nextval('public.cancelled_attempts');
    raise query_canceled;
  end $$;
  create function public.stagger(ledger public.ledger) returns text language plpgsql as $$
  begin
    if nextval('public.staggering_attempts') < 2 then raise serialization_failure; end if;
    return 'the second time';
  end $$;
  create sequence public.staggering_attempts;
  grant usage on sequence public.staggering_attempts to anon, authenticated;
  grant execute on function public.stagger to anon, authenticated;
  create sequence public.cancelled_attempts;
  create sequence public.attempts;
  grant usage on sequence public.attempts to anon, authenticated;
  grant usage on sequence public.cancelled_attempts to anon, authenticated;
  grant execute on function public.run_out_of_time to anon, authenticated;
  grant execute on function public.write_down, public.take_long, public.refuse, public.digits, public.fragile to anon, authenticated;
`;

let ada: Person;
let eve: Person;
const apikey = jwt.sign({ role: "anon" }, SECRET);
const later = { Prefer: "respond-async", apikey };

const gateways = useFixture(() => openGateways({ settings: { RATE_LIMIT: "0", DB_LOCK_TIMEOUT_SECONDS: "0" } }));
beforeAll(async () => {
  await gateways.owner.query(FUNCTIONS);
  [ada, eve] = [await newPerson(gateways), await newPerson(gateways)];
  await vi.waitFor(async () => expect((await call("digits", {}, { headers: { apikey } })).status).toBe(200), PATIENCE);
});

const PATIENCE = { timeout: 60_000, interval: 100 };

function call(name: string, body: object, sent: Sent, service = gateways.one): Promise<TestResponse> {
  return gateways.post(`${service.url}/rest/v1/rpc/${name}`, body, sent);
}

const asAda = () => ({ token: ada.pair.accessToken, headers: later });

function look(
  taskId: string,
  token: string | undefined = ada.pair.accessToken,
  service = gateways.two,
): Promise<TestResponse> {
  return gateways.get(`${service.url}/api/v1/tasks/${taskId}`, { token });
}

async function outcome(taskId: string, token?: string): Promise<TestResponse["body"]> {
  return vi.waitFor(async () => {
    const { body } = await look(taskId, token);
    expect(["done", "failed"]).toContain(body.status);
    return body;
  }, PATIENCE);
}

async function notesOf(note: string): Promise<readonly { writer: string | null }[]> {
  return (await gateways.owner.query("select writer from public.ledger where note = $1", [note])).rows;
}

/** Holds the lock that take_long waits for. */
async function closedGate(gate: number): Promise<{ open(): Promise<void> }> {
  const client = await gateways.owner.connect();
  await client.query("select pg_advisory_lock($1)", [gate]);
  return {
    async open() {
      await client.query("select pg_advisory_unlock($1)", [gate]);
      client.release();
    },
  };
}

describe("Prefer: respond-async on a function", () => {
  test("runs, whichever gateway begins the task of a function that was just created", async () => {
    for (let round = 0; round < 10; round++) {
      const name = `created_${round}`;
      await gateways.owner.query(
        `create function public.${name}() returns int language sql as 'select ${round}';
         grant execute on function public.${name} to authenticated`,
      );
      const queued = await vi.waitFor(
        async () => {
          const response = await call(name, {}, asAda());
          expect(response.status).toBe(202);
          return response;
        },
        { timeout: PATIENCE.timeout, interval: 1 },
      );
      expect(await outcome(queued.body.taskId)).toMatchObject({ status: "done", result: round });
    }
  });

  test("returns 202 with a task that runs as the caller and has the result", async () => {
    const note = randomUUID();
    const answer = await call("write_down", { note }, asAda());
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({
      taskId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      status: "queued",
      estimate: expect.any(Number),
    });
    expect(answer.headers.get("location")).toBe(`/api/v1/tasks/${answer.body.taskId}`);
    expect(answer.headers.get("preference-applied")).toBe("respond-async");

    const done = await outcome(answer.body.taskId);
    expect(done).toMatchObject({ taskId: answer.body.taskId, status: "done", progress: 100, result: { note } });
    expect(done).not.toHaveProperty("error");
    expect(await notesOf(note)).toEqual([{ writer: String(ada.userId) }]);
  });

  test("does not apply without the preference or to GET", async () => {
    expect((await call("digits", {}, { headers: { apikey } })).status).toBe(200);
    const read = await gateways.get(`${gateways.one.url}/rest/v1/rpc/digits`, { headers: later });
    expect(read.status).toBe(200);
  });

  test("is accepted with handling=strict and other preferences", async () => {
    const headers = { ...later, Prefer: "handling=strict, respond-async, wait=10" };
    expect((await call("digits", {}, { ...asAda(), headers })).status).toBe(202);
  });

  test("runs with the token's claims, numbers unrounded", async () => {
    const note = randomUUID();
    const organization = "9007199254740993";
    const token = jwt.sign(`{"role":"authenticated","org":${organization}}`, SECRET);
    const { taskId } = (await call("budget", { note }, { token, headers: later })).body;
    expect(await outcome(taskId, token)).toMatchObject({ status: "done", result: organization });
    const { rows } = await gateways.owner.query("select org::text from public.budgets where note = $1", [note]);
    expect(rows).toEqual([{ org: organization }]);
  });

  test("with an unknown function or wrong arguments is refused immediately", async () => {
    expect((await call("nothing", {}, asAda())).status).toBe(404);
    expect((await call("write_down", { no: 1 }, asAda())).status).toBe(404);
  });

  test("stores numbers of the result unrounded", async () => {
    const { taskId } = (await call("digits", {}, asAda())).body;
    await outcome(taskId);
    expect((await look(taskId)).text).toContain('"result":{"b": 1.10, "a": 12345678901234567890}');
  });

  test("reports the error and rolls back", async () => {
    const { taskId } = (await call("refuse", { reason: "I would rather not" }, asAda())).body;
    const failed = await outcome(taskId);
    expect(failed).toMatchObject({
      status: "failed",
      error: { code: "WRONG", message: "I would rather not", status: 400 },
    });
    expect(failed).not.toHaveProperty("result");
    expect(await notesOf("must not stay")).toEqual([]);
  });

  test("is retried after a transient error", async () => {
    const { taskId } = (await call("fragile", {}, asAda())).body;
    expect(await outcome(taskId)).toMatchObject({ status: "done", result: "the second time" });
  });

  test("on an action is retried after a transient error", async () => {
    const { id } = (await call("write_down", { note: "a row to stagger at" }, { ...asAda(), headers: { apikey } }))
      .body;
    const { taskId } = (await gateways.post(`${gateways.one.url}/api/v1/ledger/${id}/stagger`, undefined, asAda()))
      .body;
    expect(await outcome(taskId)).toMatchObject({ status: "done", result: "the second time" });
  });

  test("with the same Idempotency-Key is one task, however often it is sent", async () => {
    const note = randomUUID();
    const sent = { ...asAda(), headers: { ...later, "Idempotency-Key": note } };
    const ids = [
      (await call("write_down", { note }, sent)).body.taskId,
      (await call("write_down", { note }, sent, gateways.two)).body.taskId,
    ];
    expect(ids[0]).toBe(ids[1]);
    expect(await outcome(ids[0])).toMatchObject({ result: { note } });
    expect((await call("write_down", { note }, sent)).body).toMatchObject({ taskId: ids[0], status: "done" });
    expect(await notesOf(note)).toHaveLength(1);
  });

  test("with the same Idempotency-Key is a task for each tenant whose tokens name no user", async () => {
    const note = randomUUID();
    const tokens = ["9007199254740992", "9007199254740993"].map((org) =>
      jwt.sign(`{"role":"authenticated","org":${org}}`, SECRET),
    );
    const send = (token: string) => call("budget", { note }, { token, headers: { ...later, "Idempotency-Key": note } });
    const ids = await Promise.all(tokens.map(async (token) => (await send(token)).body.taskId));
    for (const [index, org] of ["9007199254740992", "9007199254740993"].entries()) {
      expect((await send(tokens[index]!)).body.taskId).toBe(ids[index]);
      expect(await outcome(ids[index], tokens[index])).toMatchObject({ result: org });
    }
    const { rows } = await gateways.owner.query("select org from public.budgets where note = $1 order by org", [note]);
    expect(rows).toEqual([{ org: "9007199254740992" }, { org: "9007199254740993" }]);
  });

  test("with an Idempotency-Key of another request is refused", async () => {
    const note = randomUUID();
    const sent = { ...asAda(), headers: { ...later, "Idempotency-Key": note } };
    const { taskId } = (await call("write_down", { note }, sent)).body;
    const others = [
      call("write_down", { note: "another" }, sent, gateways.two),
      call("digits", {}, sent),
      call("write_down", { note }, { ...sent, headers: { ...sent.headers, Prefer: "respond-async, return=minimal" } }),
    ];
    for (const { status, body } of await Promise.all(others)) {
      expect([status, body.code]).toEqual([422, "IDEMPOTENCY_KEY_REUSED"]);
    }
    await outcome(taskId);
    expect((await call("write_down", { note: "another" }, sent)).status).toBe(422);
    expect([await notesOf(note), await notesOf("another")]).toMatchObject([[{}], []]);
    // The key is this user's: to somebody else it is a new one.
    const anonymous = await call("write_down", { note: "another" }, { ...sent, token: eve.pair.accessToken });
    expect(anonymous.status).toBe(202);
    await outcome(anonymous.body.taskId, eve.pair.accessToken);
  });
});

describe("a synchronous and an asynchronous call with the same Idempotency-Key", () => {
  const now = (sent: Sent) => ({ ...sent, headers: { ...sent.headers, Prefer: "return=representation" } });
  const asAdaUnder = (key: string) => ({
    ...asAda(),
    headers: { ...later, Prefer: "respond-async, return=representation", "Idempotency-Key": key },
  });

  test("run once, in either order", async () => {
    const [first, second] = [randomUUID(), randomUUID()];
    const made = await call("write_down", { note: first }, now(asAdaUnder(first)));
    const { taskId } = (await call("write_down", { note: first }, asAdaUnder(first))).body;
    expect(await outcome(taskId)).toMatchObject({ status: "done", result: made.body });
    expect(await notesOf(first)).toHaveLength(1);

    const left = (await call("write_down", { note: second }, asAdaUnder(second))).body;
    const { result } = await outcome(left.taskId);
    const response = await call("write_down", { note: second }, now(asAdaUnder(second)), gateways.two);
    expect([response.headers.get("idempotent-replayed"), response.body]).toEqual(["true", result]);
    expect(await notesOf(second)).toHaveLength(1);
  });

  test("run once while the task is running", async () => {
    const gate = await closedGate(17);
    const before = (await notesOf("took long")).length;
    const sent = asAdaUnder(randomUUID());
    const { taskId } = (await call("take_long", { gate: 17 }, sent)).body;
    await vi.waitFor(async () => expect((await look(taskId)).body.status).toBe("running"), PATIENCE);
    const response = call("take_long", { gate: 17 }, now(sent));
    await gate.open();
    expect((await response).body).toBe("at last");
    expect(await outcome(taskId)).toMatchObject({ status: "done", result: "at last" });
    expect(await notesOf("took long")).toHaveLength(before + 1);
  });

  test("on an action run once, and are refused for another request", async () => {
    const note = randomUUID();
    const { id } = (await call("write_down", { note }, now(asAda()))).body;
    const copy = `${gateways.one.url}/api/v1/ledger/${id}/copy`;
    const made = await gateways.post(copy, undefined, now(asAdaUnder(note)));
    const { taskId } = (await gateways.post(copy, undefined, asAdaUnder(note))).body;
    expect(await outcome(taskId)).toMatchObject({ status: "done", result: made.body });
    expect(await notesOf(`copy of ${note}`)).toHaveLength(1);

    const key = randomUUID();
    expect((await gateways.post(copy, undefined, now(asAdaUnder(key)))).status).toBe(200);
    const other = (await gateways.post(`${gateways.one.url}/api/v1/ledger/${id}/stagger`, undefined, asAdaUnder(key)))
      .body;
    const error = { status: 422, code: "IDEMPOTENCY_KEY_REUSED" };
    expect(await outcome(other.taskId)).toMatchObject({ status: "failed", error });
  });
});

describe("Prefer: respond-async on an action", () => {
  test("returns 202 and runs the action as the caller", async () => {
    const { token } = asAda();
    const { id } = (
      await gateways.post(`${gateways.one.url}/api/v1/articles`, { title: "To be published", content: "…" }, { token })
    ).body;
    const answer = await gateways.post(`${gateways.one.url}/api/v1/articles/${id}/publish`, undefined, asAda());
    expect(answer.status).toBe(202);
    expect(await outcome(answer.body.taskId)).toMatchObject({ status: "done", result: { id, status: "PUBLISHED" } });
  });

  test("that exceeds the statement timeout fails without a retry", async () => {
    const { token } = asAda();
    const { id } = (await call("write_down", { note: "takes long" }, { token, headers: { apikey } })).body;
    const path = `${gateways.one.url}/api/v1/ledger/${id}/run-out-of-time`;
    const { taskId } = (await gateways.post(path, undefined, asAda())).body;
    expect(await outcome(taskId)).toMatchObject({ status: "failed", error: { status: 504, code: "TIMEOUT" } });
    const { rows } = await gateways.owner.query("select last_value::int as attempts from public.cancelled_attempts");
    expect(rows).toEqual([{ attempts: 1 }]);
  });

  test("reports an error in the resource interface's format", async () => {
    const path = `${gateways.one.url}/api/v1/articles/999999/publish`;
    const { taskId } = (await gateways.post(path, undefined, asAda())).body;
    expect(await outcome(taskId)).toMatchObject({
      status: "failed",
      error: { status: 404, code: "RESOURCE_NOT_FOUND" },
    });
  });

  test("runs in, and is reported in, the requested version", async () => {
    const { token } = asAda();
    const url = `${gateways.one.url}/api/v2/articles`;
    const { id } = (await gateways.post(url, { title: "In two versions", content: "…" }, { token })).body;
    const { headers, body } = await gateways.post(`${url}/${id}/publish`, undefined, asAda());
    expect(headers.get("location")).toBe(`/api/v2/tasks/${body.taskId}`);
    expect((await outcome(body.taskId)).result).toHaveProperty("authorId", ada.userId);
    expect((await gateways.get(`${gateways.one.url}${headers.get("location")}`, { token })).status).toBe(200);
  });

  test("with an invalid request is refused immediately", async () => {
    const { token } = asAda();
    const url = `${gateways.one.url}/api/v1/articles`;
    const { id } = (await gateways.post(url, { title: "Not to be published", content: "…" }, { token })).body;
    const refused = async (path: string, body: unknown, headers = {}) => {
      const response = await gateways.post(`${url}/${id}/${path}`, body, { token, headers: { ...later, ...headers } });
      return [response.status, response.body.error.code, response.body.error.details[0]?.field];
    };
    expect(await refused("publish", { when: "now" })).toEqual([400, "VALIDATION_ERROR", "when"]);
    expect(await refused("publish?fields=id", undefined)).toEqual([400, "VALIDATION_ERROR", "fields"]);
    expect(await refused("publish", [])).toEqual([400, "VALIDATION_ERROR", undefined]);
    const form = { "Content-Type": "text/plain" };
    expect(await refused("publish", {}, form)).toEqual([415, "UNSUPPORTED_MEDIA_TYPE", undefined]);
  });
});

describe("a task", () => {
  test("reports its progress while it is running", async () => {
    const gate = await closedGate(7);
    const { taskId } = (await call("take_long", { gate: 7 }, asAda())).body;
    await vi.waitFor(
      async () => expect((await look(taskId)).body).toMatchObject({ status: "running", progress: 40 }),
      PATIENCE,
    );
    const refused = await gateways.get(`${gateways.one.url}/api/v1/tasks/${taskId}`, {
      token: ada.pair.accessToken,
      method: "DELETE",
    });
    expect(refused.status).toBe(409);
    await gate.open();
    expect(await outcome(taskId)).toMatchObject({ status: "done", progress: 100, result: "at last" });
  });

  test("is 404 for other callers", async () => {
    const { taskId } = (await call("write_down", { note: "mine" }, asAda())).body;
    await outcome(taskId);
    const anonymous = await look(taskId, eve.pair.accessToken);
    expect(anonymous.status).toBe(404);
    expect(anonymous.body.error.code).toBe("RESOURCE_NOT_FOUND");
    const visitor = await gateways.get(`${gateways.one.url}/api/v1/tasks/${taskId}`);
    expect(visitor.status).toBe(404);
    const taken = await gateways.get(`${gateways.one.url}/api/v1/tasks/${taskId}`, {
      token: eve.pair.accessToken,
      method: "DELETE",
    });
    expect(taken.status).toBe(404);
    expect((await look(taskId)).status).toBe(200);
  });

  test("is never cached, errors included", async () => {
    const { taskId } = (await call("write_down", { note: "uncached" }, asAda())).body;
    await outcome(taskId);
    const tasks = `${gateways.one.url}/api/v1/tasks`;
    const token = ada.pair.accessToken;
    const response = [
      await look(taskId),
      await look(taskId, eve.pair.accessToken),
      await look(taskId, "no token"),
      await gateways.get(`${tasks}/${taskId}`, { token, method: "PUT" }),
      await gateways.get(`${tasks}/${taskId}?version=3`, { token }),
    ];
    expect(response.map(({ status }) => status)).toEqual([200, 404, 401, 405, 400]);
    expect(new Set(response.map(({ headers }) => headers.get("cache-control")))).toEqual(new Set(["no-store"]));
  });

  test("can be read and deleted by an administrator", async () => {
    const { taskId } = (await call("write_down", { note: "seen from above" }, asAda())).body;
    await outcome(taskId);
    const administrator = jwt.sign({ sub: String(eve.userId), role: "admin" }, SECRET);
    expect((await look(taskId, administrator)).body).toMatchObject({ status: "done" });
    expect((await look(randomUUID(), administrator)).status).toBe(404);
    const address = `${gateways.one.url}/api/v1/tasks/${taskId}`;
    expect((await gateways.get(address, { token: administrator, method: "DELETE" })).status).toBe(204);
    expect((await look(taskId)).status).toBe(404);
  });

  test("is available in served versions only", async () => {
    const { body } = await call("write_down", { note: "in a version" }, asAda());
    const { accessToken: token } = ada.pair;
    const address = `${gateways.one.url}/api`;
    const codeAt = async (path: string) => (await gateways.get(`${address}/${path}`, { token })).body.error.code;
    expect(await codeAt(`v3/tasks/${body.taskId}`)).toBe("UNSUPPORTED_VERSION");
    expect(await codeAt(`v1/tasks/${body.taskId}?version=3`)).toBe("VALIDATION_ERROR");
    expect((await gateways.get(`${address}/v2/tasks/${body.taskId}`, { token })).status).toBe(200);
  });

  test("has an address in a served version when version 1 is retired", async () => {
    const { owner } = gateways;
    const { accessToken: token } = ada.pair;
    await owner.query("update api.versions set status = 'retired' where number = 1");
    try {
      const users = `${gateways.one.url}/users`;
      await vi.waitFor(async () => expect((await gateways.get(users)).status).toBe(410), PATIENCE);
      const { headers, body } = await call("write_down", { note: "late" }, asAda());
      expect(headers.get("location")).toBe(`/api/v2/tasks/${body.taskId}`);
      const response = await gateways.get(`${gateways.one.url}${headers.get("location")}`, { token });
      expect(response.body.taskId).toBe(body.taskId);
    } finally {
      await owner.query("update api.versions set status = 'supported' where number = 1");
      for (const { url } of [gateways.one, gateways.two]) {
        await vi.waitFor(async () => expect((await gateways.get(`${url}/users`)).status).toBe(200), PATIENCE);
      }
    }
  });

  test("of an anonymous caller can be read by any anonymous caller with its id", async () => {
    const { taskId } = (await call("write_down", { note: "a visitor's" }, { headers: later })).body;
    await vi.waitFor(async () => {
      const answer = await gateways.get(`${gateways.two.url}/api/v1/tasks/${taskId}`);
      expect(answer.body.status).toBe("done");
    }, PATIENCE);
    expect((await look(taskId)).status).toBe(404);
  });

  test("that is queued can be withdrawn and never runs", async () => {
    const gates = await Promise.all([closedGate(21)]);
    // One caller runs three tasks at a time, so that the fourth waits.
    const busy = await Promise.all(Array.from({ length: 3 }, () => call("take_long", { gate: 21 }, asAda())));
    await vi.waitFor(async () => {
      const states = await Promise.all(busy.map(async ({ body }) => (await look(body.taskId)).body.status));
      expect(states).toEqual(busy.map(() => "running"));
    }, PATIENCE);
    const note = randomUUID();
    const { taskId } = (await call("write_down", { note }, asAda())).body;
    expect((await look(taskId)).body).toMatchObject({ status: "queued", progress: 0 });
    const taken = await gateways.get(`${gateways.one.url}/api/v1/tasks/${taskId}`, {
      token: ada.pair.accessToken,
      method: "DELETE",
    });
    expect(taken.status).toBe(204);
    expect((await look(taskId)).status).toBe(404);
    await Promise.all(gates.map(({ open }) => open()));
    for (const { body } of busy) await outcome(body.taskId);
    expect(await notesOf(note)).toEqual([]);
  });

  test("that is finished is deleted on request, or after a day", async () => {
    const ids = [];
    for (const _ of [1, 2]) ids.push((await call("digits", {}, asAda())).body.taskId);
    for (const id of ids) await outcome(id);
    const forgotten = await gateways.get(`${gateways.one.url}/api/v1/tasks/${ids[0]}`, {
      token: ada.pair.accessToken,
      method: "DELETE",
    });
    expect(forgotten.status).toBe(204);
    await gateways.owner.query("update content_service.tasks set expires_at = now() where id = $1", [ids[1]]);
    for (const id of ids) expect((await look(id)).status).toBe(404);
    await gateways.owner.query("select content_service.maintain_tasks()");
    const { rowCount } = await gateways.owner.query("select from content_service.tasks where id = $1", [ids[1]]);
    expect(rowCount).toBe(0);
  });

  test("of an account that was disabled meanwhile fails", async () => {
    const gone = await newPerson(gateways);
    const gates = await closedGate(33);
    const asGone = { token: gone.pair.accessToken, headers: later };
    // Three run at a time, so that the fourth waits.
    const busy = await Promise.all(Array.from({ length: 3 }, () => call("take_long", { gate: 33 }, asGone)));
    await vi.waitFor(async () => {
      for (const { body } of busy) expect((await look(body.taskId, gone.pair.accessToken)).body.status).toBe("running");
    }, PATIENCE);
    const note = randomUUID();
    const { taskId } = (await call("write_down", { note }, asGone)).body;
    await gateways.owner.query("select auth.disable_account($1, null)", [gone.userId]);
    // Claims that were looked at of late are looked at again after four seconds.
    await new Promise((done) => setTimeout(done, 4_500));
    await gates.open();
    await vi.waitFor(async () => {
      const { rows } = await gateways.owner.query("select status, error from content_service.tasks where id = $1", [
        taskId,
      ]);
      expect(rows[0]).toMatchObject({ status: "failed", error: { status: 401 } });
    }, PATIENCE);
    expect(await notesOf(note)).toEqual([]);
  });

  test("beyond a thousand unfinished ones is refused with 429 and Retry-After", async () => {
    const crowd = `user ${eve.userId}`;
    await gateways.owner.query(
      `insert into content_service.tasks (owner, caller_key, work, caller, request, body)
        select $1, $1, 'POST /nothing', '{}', '{}', '' from generate_series(1, 1000)`,
      [crowd],
    );
    const asEve = { token: eve.pair.accessToken, headers: later };
    const { id } = (await call("write_down", { note: "a row" }, { ...asEve, headers: { apikey } })).body;
    const response = [
      await call("digits", {}, asEve),
      await gateways.post(`${gateways.one.url}/api/v1/ledger/${id}/run-out-of-time`, undefined, asEve),
    ];
    await gateways.owner.query("delete from content_service.tasks where owner = $1", [crowd]);
    for (const { status, headers } of response) expect([status, headers.get("retry-after")]).toEqual([429, "1"]);
    expect(response.map(({ body }) => body.code ?? body.error.code)).toEqual(["TOMNY", "RATE_LIMITED"]);
    expect((await call("digits", {}, asEve)).status).toBe(202);
  });

  test("stores no credentials in the database", async () => {
    const { taskId } = (await call("write_down", { note: "no secret" }, asAda())).body;
    const { rows } = await gateways.owner.query("select tasks::text as all from content_service.tasks where id = $1", [
      taskId,
    ]);
    expect(rows[0].all).toContain("write_down");
    expect(rows[0].all).not.toContain(ada.pair.accessToken);
    expect(rows[0].all).not.toContain(apikey);
  });

  test.each(["PUT", "POST", "PATCH"])("does not support %s", async (method) => {
    const answer = await gateways.get(`${gateways.one.url}/api/v1/tasks/${randomUUID()}`, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("DELETE, GET, HEAD, OPTIONS");
  });
});

describe("task maintenance", () => {
  test("fails a task without remaining attempts, unless its last attempt is running", async () => {
    const attempt = await gateways.owner.connect();
    try {
      const id = await beginAttempt(attempt);
      await gateways.owner.query("select content_service.maintain_tasks()");
      expect((await look(id)).body.status).toBe("running");

      await attempt.query("rollback");
      await gateways.owner.query("select content_service.maintain_tasks()");
      expect((await look(id)).body).toMatchObject({ status: "failed", error: { status: 500 } });
    } finally {
      await attempt.query("rollback");
      attempt.release();
    }
  });

  /** The service tends to tasks itself, and may have come before the attempt. */
  async function beginAttempt(attempt: PoolClient): Promise<string> {
    for (;;) {
      const made = await gateways.owner.query(`
        insert into content_service.tasks (owner, work, status, caller, request, body, created_at, attempts)
          values ('user ${ada.userId}', 'POST /nothing', 'running', '{}', '{}', '', now() - interval '1 hour', 5) returning id`);
      const { id } = made.rows[0];
      await attempt.query("begin");
      const { rows } = await attempt.query("select status from content_service.tasks where id = $1 for update", [id]);
      if (rows[0].status === "running") return id;
      await attempt.query("rollback");
    }
  }
});

describe("a table that is called tasks", () => {
  test("serves its rows beside the tasks at the same path", async () => {
    await gateways.owner.query(`
      create table public.tasks (id uuid primary key default gen_random_uuid(), label text not null);
      grant select, insert, update, delete on public.tasks to anon, authenticated;
      notify pgrst, 'reload schema'`);
    const rows = `${gateways.two.url}/api/v1/tasks`;
    await vi.waitFor(async () => expect((await gateways.get(rows)).status).toBe(200), PATIENCE);
    const { accessToken: token } = ada.pair;
    const made = await gateways.post(rows, { label: "Sweep" }, { token });
    const row = `${gateways.two.url}${made.headers.get("location")}`;
    expect((await gateways.get(row, { token })).body).toEqual({ id: made.body.id, label: "Sweep" });
    expect((await fetch(row, { method: "HEAD" })).status).toBe(200);
    const patched = await gateways.post(row, { label: "Mop" }, { token, method: "PATCH" });
    expect([patched.status, patched.body.label]).toEqual([200, "Mop"]);
    const options = await gateways.get(row, { method: "OPTIONS" });
    expect(options.headers.get("allow")).toBe("DELETE, GET, HEAD, OPTIONS, PATCH, PUT");

    const { taskId } = (await call("write_down", { note: "beside" }, asAda())).body;
    expect((await outcome(taskId)).status).toBe("done");
    expect((await look(taskId, eve.pair.accessToken)).status).toBe(404);

    expect((await gateways.get(row, { token, method: "DELETE" })).status).toBe(204);
    expect((await gateways.get(row, { token })).status).toBe(404);

    const { paths } = (await gateways.get(`${gateways.two.url}/openapi.json`)).body;
    const addresses = Object.keys(paths).map((path) => path.replaceAll(/\{\w+\}/g, "{}"));
    expect(new Set(addresses).size).toBe(addresses.length);
    expect(addresses).toContain("/api/v1/tasks/{}");
  });
});
