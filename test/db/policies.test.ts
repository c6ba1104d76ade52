import { beforeAll, describe, expect, test } from "vitest";
import { readUsersAccess, runMigrations, setUsersAccess } from "../../migrate/migrate.ts";
import { cloneDatabase, urlOf } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { until } from "../until.ts";
import { admin, alice, anonymous, attempt, connect, SEED, service } from "./callers.ts";
import { OPEN_ATTEMPTS, OWNER_ATTEMPTS, OWNER_SEED, untried } from "./policies.ts";

type Owned = { readonly requests: string; readonly owner: string; drop(): Promise<void> };

const DATABASES: Record<string, () => Promise<Owned>> = {
  "a superuser": async () => {
    const { url, ownerUrl, drop } = await cloneDatabase("content");
    return { requests: url, owner: ownerUrl, drop };
  },
  "an ordinary role": async () => {
    const database = await cloneDatabase("empty");
    const superuser = await connect(database.ownerUrl);
    const name = `owner_of_${database.name}`;
    await superuser.query(`create role ${name} login`);
    await superuser.query(`alter database ${database.name} owner to ${name}`);
    const owner = urlOf(name, database.name);
    await runMigrations({ name: "migrate" }, { url: owner, shadowUrl: owner, rootUrl: urlOf("postgres", "postgres") });
    await superuser.end();
    return {
      requests: database.url,
      owner,
      async drop() {
        await database.drop();
        const maintenance = await connect(urlOf("postgres", "postgres"));
        await maintenance.query(`drop role ${name}`);
        await maintenance.end();
      },
    };
  },
};

const ACCESSES = [
  { access: "open", seed: SEED, attempts: OPEN_ATTEMPTS },
  { access: "owner", seed: SEED + OWNER_SEED, attempts: OWNER_ATTEMPTS },
] as const;
const CASES = Object.entries(DATABASES).flatMap(([of, create]) => ACCESSES.map((each) => ({ of, create, ...each })));

describe.each(CASES)("in a database of $of, with USERS_ACCESS=$access", ({ create, access, seed, attempts }) => {
  const database = useFixture(create);
  const owner = useFixture(() => connect(database.owner));
  const requests = useFixture(() => connect(database.requests));
  beforeAll(async () => {
    await setUsersAccess(owner, access);
    await owner.query(seed);
  });

  describe.each([...new Set(attempts.map(({ table }) => table))])("%s", (name) => {
    test.each(attempts.filter(({ table }) => table === name))("$verb $what", async (tried) => {
      const outcome = {
        anon: await attempt(requests, anonymous, tried.statement),
        alice: await attempt(requests, alice, tried.statement),
        admin: await attempt(requests, admin, tried.statement),
        service: await attempt(requests, service, tried.statement),
      };
      expect(outcome).toEqual({ anon: tried.anon, alice: tried.alice, admin: tried.admin, service: tried.service });
      // A zero means something only where the rows exist.
      if (Object.values(outcome).includes(0)) expect(outcome.service).not.toBe(0);
    });
  });

  test("does not apply its policies to its owner, nor in a function of its owner", async () => {
    await owner.query("begin");
    await owner.query(`
      create function public.rename_everybody() returns bigint language sql security definer set search_path = '' as $$
        with renamed as (update public.users set name = 'X' returning id) select count(*) from renamed
      $$;
      grant execute on function public.rename_everybody to anon;
    `);
    await owner.query("commit");
    const everybody = (await owner.query("update public.users set name = name")).rowCount;
    expect(everybody).toBeGreaterThan(2);

    await requests.query("begin");
    await requests.query("set local role anon");
    const { rows } = await requests.query("select public.rename_everybody() as count");
    await requests.query("rollback");
    await owner.query("drop function public.rename_everybody");
    expect(rows).toEqual([{ count: String(everybody) }]);
  });

  test("allows deleting a user with all related rows, whatever role owns the tables", async () => {
    await requests.query("begin");
    await requests.query(
      "select set_config('role', 'authenticated', true), set_config('request.jwt.claims', '{\"sub\":\"1\"}', true)",
    );
    await requests.query("delete from public.users where id = 1");
    const { rows } = await requests.query(
      "select author_id from public.articles union all select author_id from public.comments",
    );
    await requests.query("rollback");
    // The article of Bob.
    expect(rows).toEqual([{ author_id: "2" }]);
  });
});

describe("the attempts", () => {
  test("cover every table that is granted to a role of a request, with every command", async () => {
    const database = await cloneDatabase("content");
    const owner = await connect(database.ownerUrl);
    expect(await untried(owner)).toEqual([]);

    await owner.query("create table public.forgotten (id int); grant update (id) on public.forgotten to authenticated");
    expect(await untried(owner)).toEqual([
      "delete public.forgotten",
      "insert public.forgotten",
      "select public.forgotten",
      "update public.forgotten",
    ]);
    await owner.end();
    await database.drop();
  });
});

test("a start sets USERS_ACCESS again after a deadlock with requests of another gateway", async () => {
  const database = await cloneDatabase("content");
  const [starting, reading, watching] = await Promise.all([1, 2, 3].map(() => connect(database.ownerUrl)));
  try {
    const { rows } = await starting!.query("select pg_backend_pid() as pid");
    const isWaiting = "select from pg_locks where pid = $1 and not granted";
    // These timeouts make Postgres refuse the start, not the reading.
    await starting!.query("set deadlock_timeout = '2s'");
    await reading!.query("set deadlock_timeout = '10min'");
    await reading!.query("begin; lock table public.articles in access share mode");
    const set = setUsersAccess(starting!, "owner");
    await until(async () => (await watching!.query(isWaiting, [rows[0].pid])).rowCount === 1);
    await reading!.query("select from public.users");
    await reading!.query("commit");
    await set;
    expect(await readUsersAccess(starting!)).toBe("owner");
  } finally {
    await Promise.all([starting, reading, watching].map((client) => client!.end()));
    await database.drop();
  }
});
