import type pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../until.ts";
import { alice, anonymous, bob, connect, service } from "./callers.ts";
import { useContent } from "./content.ts";

const content = useContent();
const HASH = "a".repeat(64);
const OTHER_HASH = "b".repeat(64);

beforeAll(async () => {
  await content.owner.query(`
    insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
      values ('notes', 'notes', false, 10, '{image/*}'), ('open', 'open', true, null, null);
    create policy own_folder on storage.objects to authenticated
      using ((storage.foldername(name))[1] = (select auth.uid())::text)
      with check ((storage.foldername(name))[1] = (select auth.uid())::text);`);
});
afterAll(() => content.owner.query("drop policy own_folder on storage.objects"));
beforeEach(() =>
  content.owner.query(
    "delete from storage.objects; delete from content_service.unfinished_uploads; delete from content_service.files",
  ),
);

/** Rows of the statements, as the owner; undone if the last one fails. */
async function rowsOf(statement: string, values: unknown[] = []): Promise<pg.QueryResult["rows"]> {
  return (await content.owner.query(statement, values)).rows;
}

/** The same for a value. */
async function firstValue(statement: string, values: unknown[] = []): Promise<unknown> {
  const [row] = await rowsOf(statement, values);
  return row && Object.values(row)[0];
}

async function addObjects(bucket: string, ...names: string[]): Promise<void> {
  for (const name of names) {
    await content.owner.query("select storage.put_object($1, $2, '1', '{\"size\": 3}', null, 'v1', false)", [
      bucket,
      name,
    ]);
  }
}

describe("helpers for policies", () => {
  test("folders, name and extension of a path", async () => {
    const [row] = await rowsOf(
      "select storage.foldername(path) as folders, storage.filename(path) as name, storage.extension(path) as extension from (values ('a/b/c.tar.gz')) as t (path)",
    );
    expect(row).toEqual({ folders: ["a", "b"], name: "c.tar.gz", extension: "gz" });
  });

  test("storage.get_size_by_bucket counts what the caller may read", async () => {
    await addObjects("notes", "1/x", "2/y");
    expect(await rowsOf("select * from storage.get_size_by_bucket()")).toEqual([{ size: "6", bucket_id: "notes" }]);
    expect(await content.as(alice, "select * from storage.get_size_by_bucket()")).toEqual([
      { size: "3", bucket_id: "notes" },
    ]);
  });
});

describe("objects", () => {
  test("storage.put_object adds for those whom a policy lets, and replaces on request", async () => {
    const put = "select storage.put_object('notes', '1/x', '1', '{}', null, 'v1', $1)";
    expect(await content.as(alice, put, [false])).toHaveLength(1);
    for (const caller of [bob, anonymous])
      await expect(content.as(caller, put, [false])).rejects.toMatchObject({ code: "42501" });
    await addObjects("notes", "1/x");
    await expect(content.as(alice, put, [false])).rejects.toMatchObject({ code: "23505" });
    expect(await content.as(alice, put, [true])).toHaveLength(1);
  });

  test("an owner that is a uuid is kept as one too", async () => {
    const id = "8a6f5b7e-0000-4000-8000-000000000001";
    await content.owner.query("select storage.put_object('notes', 'x', $1, '{}', null, 'v1', false)", [id]);
    expect(await rowsOf("select owner, owner_id from storage.objects")).toEqual([{ owner: id, owner_id: id }]);
  });

  test("storage.find_objects, storage.move_object and storage.remove_objects see what the policies show", async () => {
    await addObjects("notes", "1/x", "2/y");
    const find = "select name from storage.find_objects('notes', '{1/x,2/y}')";
    expect(await content.as(alice, find)).toEqual([{ name: "1/x" }]);
    const move = "select name from storage.move_object('notes', $1, 'notes', $2, null, 'v2')";
    expect(await content.as(alice, move, ["1/x", "1/z"])).toEqual([{ name: "1/z" }]);
    expect(await content.as(alice, move, ["2/y", "1/y"])).toEqual([]);
    await expect(content.as(alice, move, ["1/x", "2/x"])).rejects.toMatchObject({ code: "42501" });
    expect(await content.as(alice, "select name from storage.remove_objects('notes', '{1/x,2/y}')")).toEqual([
      { name: "1/x" },
    ]);
  });

  test.each(["", "/x", "a/../b", ".", "a\nb"])("the name %j is refused", async (name) => {
    const insert = content.owner.query("insert into storage.objects (bucket_id, name) values ('notes', $1)", [name]);
    await expect(insert).rejects.toMatchObject({ constraint: "content_service_object_name_is_valid" });
  });
});

describe("lists", () => {
  const NAMES = ["a/1", "a/deep/2", "a.txt", "a0", "b", "ü/3"];

  test("storage.end_of_prefix is the first text behind all that begin with the prefix", async () => {
    expect(await firstValue("select storage.end_of_prefix('a/')")).toBe("a0");
    expect(await firstValue("select storage.end_of_prefix('')")).toBeNull();
    expect(await firstValue("select storage.end_of_prefix('ü')")).toBeNull();
  });

  test("storage.list_names goes through one level or all, in both directions, from any entry", async () => {
    await addObjects("notes", ...NAMES);
    const listed = async (hasFolders: boolean, isDescending: boolean, prefix = "") => {
      const entries: string[] = [];
      for (let after: string | null = null; ; after = entries.at(-1)!) {
        const values = [prefix, hasFolders, isDescending, after];
        const page = await rowsOf("select entry from storage.list_names('notes', $1, $2, $3, $4, 2)", values);
        entries.push(...page.map(({ entry }) => entry));
        if (page.length < 2) return entries;
      }
    };
    const level = ["a.txt", "a/", "a0", "b", "ü/"];
    expect(await listed(true, false)).toEqual(level);
    expect(await listed(true, true)).toEqual(level.toReversed());
    const all = ["a.txt", "a/1", "a/deep/2", "a0", "b", "ü/3"];
    expect(await listed(false, false)).toEqual(all);
    expect(await listed(false, true)).toEqual(all.toReversed());
    expect(await listed(true, false, "a/")).toEqual(["a/1", "a/deep/"]);
    expect(await listed(true, true, "a")).toEqual(["a0", "a/", "a.txt"]);
    expect(await listed(true, false, "ü")).toEqual(["ü/"]);
  });

  test("storage.list_times orders by a time, folders by that of their objects", async () => {
    await addObjects("notes", "f/1", "f/2", "g");
    await content.owner.query(`
      set session_replication_role = replica;
      update storage.objects set created_at = case name when 'f/1' then timestamptz '2026-01-01Z' when 'g' then '2026-01-02Z' else '2026-01-03Z' end;
      reset session_replication_role`);
    const list = async (isDescending: boolean) =>
      (
        await rowsOf("select entry from storage.list_times('notes', '', true, $1, false, null, null, 9)", [
          isDescending,
        ])
      ).map(({ entry }) => entry);
    expect(await list(false)).toEqual(["f/", "g"]);
    expect(await list(true)).toEqual(["g", "f/"]);
  });

  test("storage.search gives the names within a folder", async () => {
    await addObjects("notes", ...NAMES);
    const search = "select name from storage.search($1, 'notes', 10, 1, 0, $2, $3)";
    expect((await rowsOf(search, ["", "", "name"])).map(({ name }) => name)).toEqual(["a.txt", "a", "a0", "b", "ü"]);
    expect((await rowsOf(search, ["a/", "D", "name"])).map(({ name }) => name)).toEqual(["deep"]);
    expect(await rowsOf(search, ["", "", "created_at"])).toHaveLength(5);
  });
});

describe("buckets", () => {
  test("storage.put_bucket, storage.change_bucket, storage.find_buckets and storage.remove_bucket are for those whom a policy lets", async () => {
    await expect(content.as(alice, "select storage.put_bucket('mine', '1', true, null, null)")).rejects.toMatchObject({
      code: "42501",
    });
    expect(await content.as(alice, "select id from storage.find_buckets(null, null, 'name', false, 9, 0)")).toEqual([]);
    await content.owner.query("select storage.put_bucket('ours', '1', true, 5, '{a/b}')");
    const changed = "select * from storage.change_bucket('ours', false, null, null, '{allowed_mime_types}')";
    expect(await content.as(alice, changed)).toEqual([]);
    expect(await rowsOf(changed)).toEqual([{ change_bucket: "ours" }]);
    expect(
      await rowsOf(
        "select id, public, file_size_limit, allowed_mime_types from storage.find_buckets('ours', null, 'name', false, 9, 0)",
      ),
    ).toEqual([{ id: "ours", public: false, file_size_limit: "5", allowed_mime_types: null }]);
    expect(await content.as(alice, "select * from storage.remove_bucket('ours')")).toEqual([]);
    expect(await rowsOf("select * from storage.remove_bucket('ours')")).toEqual([{ remove_bucket: "ours" }]);
  });

  test("storage.empty_bucket removes what the caller may remove", async () => {
    await addObjects("notes", "1/x", "2/y");
    expect(await content.as(alice, "select storage.empty_bucket('notes') as count")).toEqual([{ count: "1" }]);
    expect(await firstValue("select storage.empty_bucket('notes')")).toBe("2");
  });
});

describe("the service", () => {
  const asLogin = (statement: string, values: unknown[] = []) =>
    content.requests.query(statement, values).then(({ rows }) => rows);

  test("its functions are closed to callers", async () => {
    const calls = [
      "bucket_terms('x')",
      "public_object('x', 'y')",
      "object_version('x', 'y')",
      "hold_object('x', 'y', null, null)",
      "name_content('x', 'y', 'z')",
    ];
    for (const call of calls) {
      for (const caller of [anonymous, alice, service]) {
        await expect(content.as(caller, `select * from content_service.${call}`)).rejects.toMatchObject({
          code: "42501",
        });
      }
    }
  });

  test("content_service.bucket_terms are what an upload must keep to", async () => {
    expect(await asLogin("select * from content_service.bucket_terms('notes')")).toEqual([
      { is_public: false, file_size_limit: "10", allowed_mime_types: ["image/*"] },
    ]);
    expect(await asLogin("select * from content_service.bucket_terms('nowhere')")).toEqual([]);
  });

  test("content_service.public_object finds those of public buckets only, content_service.object_version all", async () => {
    await addObjects("notes", "x");
    await addObjects("open", "x");
    for (const [bucket, isPublic] of [
      ["notes", 0],
      ["open", 1],
    ] as const) {
      expect(await asLogin("select name from content_service.public_object($1, 'x')", [bucket])).toHaveLength(isPublic);
      expect(await asLogin("select id from content_service.object_version($1, 'x')", [bucket])).toHaveLength(1);
      expect(await asLogin("select id from content_service.object_version($1, 'y')", [bucket])).toHaveLength(0);
    }
  });

  test("content_service.hold_object keeps the object of that id and version, and no other", async () => {
    await addObjects("notes", "x");
    const held = (id: string, version: string | null) =>
      asLogin("select content_service.hold_object('notes', 'x', $1, $2) as held", [id, version]).then(
        ([row]) => row!.held as boolean,
      );
    const { id, version } = (await rowsOf("select id, version from storage.objects"))[0]!;
    expect(await held(id, version)).toBe(true);
    expect(await held(id, "another")).toBe(false);
    expect(await held("00000000-0000-4000-8000-000000000009", version)).toBe(false);
  });

  test("content_service.tg_objects__check_owner lets callers own what they replace, and give nothing to others", async () => {
    await content.owner.query(
      "insert into storage.objects (bucket_id, name, owner_id) values ('notes', '1/x', '1'), ('notes', '1/y', '2')",
    );
    const own = (name: string, owner: string | null, caller = alice) =>
      content.as(caller, "update storage.objects set owner_id = $2 where name = $1 returning owner_id", [name, owner]);
    for (const other of ["2", null]) await expect(own("1/x", other)).rejects.toMatchObject({ code: "42501" });
    const uuid = "update storage.objects set owner = gen_random_uuid() where name = '1/x'";
    await expect(content.as(alice, uuid)).rejects.toMatchObject({ code: "42501" });
    expect(await own("1/y", "1")).toEqual([{ owner_id: "1" }]);
    const put = "select storage.put_object('notes', '1/x', $1, '{}', null, 'v', true)";
    await expect(content.as(alice, put, ["2"])).rejects.toMatchObject({ code: "42501" });
    expect(await own("1/x", "2", service)).toEqual([{ owner_id: "2" }]);
    await content.owner.query("update storage.objects set owner_id = '3'");
  });

  test("content_service.name_content names a content that content_service.keep_file has noted", async () => {
    await addObjects("notes", "x");
    await expect(asLogin("select content_service.name_content('notes', 'x', $1)", [HASH])).rejects.toMatchObject({
      code: "23503",
    });
    await asLogin("select content_service.keep_file($1, 3)", [HASH]);
    expect(await asLogin("select content_service.name_content('notes', 'x', $1)", [HASH])).toHaveLength(1);
    expect(await rowsOf("select hash, released_at from content_service.files")).toEqual([
      { hash: HASH, released_at: null },
    ]);
  });

  test("content_service.tg_objects__keep_content takes contents from the owner alone, content_service.tg_objects__release_content notes what is gone", async () => {
    await content.owner.query("select content_service.keep_file($1, 3)", [HASH]);
    const insert =
      "insert into storage.objects (bucket_id, name, content) values ('notes', '1/x', $1) returning content";
    expect(await content.as(alice, insert, [HASH])).toEqual([{ content: null }]);
    expect(await content.as(service, insert, [HASH])).toEqual([{ content: null }]);
    await addObjects("notes", "1/y");
    await content.owner.query("select content_service.name_content('notes', '1/y', $1)", [HASH]);
    await content.owner.query("delete from storage.objects");
    expect(await firstValue("select released_at is not null from content_service.files")).toBe(true);
  });

  test("content_service.take_unused_files returns what nobody names, after a while", async () => {
    await content.owner.query("select content_service.keep_file($1, 3), content_service.keep_file($2, 3)", [
      HASH,
      OTHER_HASH,
    ]);
    await addObjects("notes", "x");
    await content.owner.query("select content_service.name_content('notes', 'x', $1)", [HASH]);
    const take = "select hash from content_service.take_unused_files($1::interval, 10) as hash";
    expect(await rowsOf(take, ["1 hour"])).toEqual([]);
    expect(await rowsOf(take, ["0"])).toEqual([{ hash: OTHER_HASH }]);
  });

  test("content_service.note_stray_files leaves what is known", async () => {
    await addObjects("notes", "x");
    await content.owner.query("select content_service.keep_file($1, 3)", [HASH]);
    await content.owner.query("select content_service.name_content('notes', 'x', $1)", [HASH]);
    await content.owner.query("select content_service.note_stray_files($1)", [[HASH, OTHER_HASH]]);
    expect(await rowsOf("select hash, released_at is null as kept from content_service.files order by hash")).toEqual([
      { hash: HASH, kept: true },
      { hash: OTHER_HASH, kept: false },
    ]);
  });
});

describe("bounds of buckets", () => {
  const bound = (name: string, value: number | null) =>
    content.owner.query(`update storage.buckets set ${name} = $1 where id = 'notes'`, [value]);
  const usage = () => rowsOf("select owner_id, bytes::int from content_service.bucket_usage order by owner_id");

  /** Adds an object of the owner with a content of that size. */
  async function upload(name: string, owner: string, bytes: number): Promise<void> {
    const hash = bytes.toString(16).padStart(64, "0");
    await content.owner.query("select storage.put_object('notes', $1, $2, '{\"size\": 1}', null, 'v1', true)", [
      name,
      owner,
    ]);
    await content.owner.query("select content_service.keep_file($1, $2)", [hash, bytes]);
    await content.owner.query("select content_service.name_content('notes', $1, $2)", [name, hash]);
  }

  beforeEach(async () => {
    for (const name of ["max_bytes", "max_bytes_of_owner"]) await bound(name, null);
  });

  test("content_service.tg_buckets__count_usage counts what is there, content_service.tg_objects__count_usage what comes and goes", async () => {
    await upload("1/x", "1", 10);
    await upload("2/x", "2", 5);
    expect(await usage()).toEqual([]);
    await bound("max_bytes", 100);
    expect(await usage()).toEqual([
      { owner_id: "1", bytes: 10 },
      { owner_id: "2", bytes: 5 },
    ]);
    await upload("1/x", "1", 30);
    await upload("1/y", "1", 10);
    await content.owner.query("update storage.objects set owner_id = '2' where name = '1/y'");
    await content.owner.query("delete from storage.objects where name = '2/x'");
    expect(await usage()).toEqual([
      { owner_id: "1", bytes: 30 },
      { owner_id: "2", bytes: 10 },
    ]);
    await content.owner.query("update storage.objects set bucket_id = 'open'");
    expect((await usage()).every(({ bytes }) => bytes === 0)).toBe(true);
    await bound("max_bytes", null);
    expect(await usage()).toEqual([]);
  });

  test("content_service.add_bucket_usage refuses what is beyond the bound of a bucket or of an owner in it", async () => {
    await bound("max_bytes", 50);
    await bound("max_bytes_of_owner", 30);
    await upload("1/x", "1", 30);
    await expect(upload("1/y", "1", 1)).rejects.toMatchObject({ code: "PT413", message: "The bucket notes is full." });
    await upload("2/x", "2", 20);
    await expect(upload("3/x", "3", 1)).rejects.toMatchObject({ code: "PT413" });
    await expect(
      content.owner.query("select content_service.add_bucket_usage('{notes}', '{3}', '{1}')"),
    ).rejects.toMatchObject({ code: "PT413" });
    // An upload that takes less is possible beyond a bound, too.
    await bound("max_bytes", 10);
    await upload("1/x", "1", 20);
  });

  test("content_service.lock_bounded_buckets lets uploads of several owners be counted one after the other", async () => {
    await bound("max_bytes", 100);
    const add = (client: pg.Client, owner: string) =>
      client.query("select content_service.add_bucket_usage('{notes}', $1, '{60}')", [[owner]]);
    const [ada, ben] = [await connect(content.database.ownerUrl), await connect(content.database.ownerUrl)];
    try {
      await ada.query("begin");
      await add(ada, "1");
      const second = add(ben, "2").then(
        () => null,
        (error: unknown) => error,
      );
      await until(async () => {
        const waiting = await rowsOf("select from pg_locks where locktype = 'advisory' and not granted");
        return waiting.length > 0;
      });
      await ada.query("commit");
      expect(await second).toMatchObject({ code: "PT413", message: "The bucket notes is full." });
    } finally {
      await Promise.all([ada.end(), ben.end()]);
      await content.owner.query("delete from content_service.bucket_usage");
    }
  });
});

describe("uploads in several requests", () => {
  const ID = "00000000-0000-4000-8000-000000000001";
  const OTHER_ID = "00000000-0000-4000-8000-000000000002";
  const asLogin = (statement: string, values: unknown[] = []) =>
    content.requests.query(statement, values).then(({ rows }) => rows);
  beforeEach(() => content.owner.query("update storage.buckets set max_bytes = null, max_bytes_of_owner = null"));

  const begin = (id: string, role = "authenticated") =>
    asLogin(
      "select content_service.begin_upload($1, 'authenticated 1', 'user 1', $2, 'notes', '1/x', '1', '{}', 0, 100)",
      [id, role],
    );
  const put = (id: string, number: number, hash: string, bytes: number) =>
    asLogin(
      "select content_service.keep_file($4, $5), content_service.put_part($1, 'authenticated', $2, $4, $5, $3) as is_kept",
      [id, number, 100, hash, bytes],
    );

  test("content_service.begin_upload is found by content_service.find_upload and content_service.list_uploads, for its caller alone", async () => {
    await begin(ID);
    await begin(OTHER_ID);
    const ofCaller = async (caller: string) => [
      (await asLogin("select id from content_service.find_upload($1, $2)", [ID, caller])).length,
      (await asLogin("select id from content_service.list_uploads('notes', $1, '1/', null, null, 10)", [caller]))
        .length,
    ];
    expect(await ofCaller("authenticated 1")).toEqual([1, 2]);
    expect(await ofCaller("authenticated 2")).toEqual([0, 0]);
    expect(
      await asLogin("select id from content_service.list_uploads('notes', 'authenticated 1', '', '1/x', $1, 10)", [ID]),
    ).toEqual([{ id: OTHER_ID }]);
  });

  test("content_service.put_part keeps contents until content_service.end_upload, content_service.list_parts returns them", async () => {
    await begin(ID);
    expect((await put(ID, 2, HASH, 60))[0]!.is_kept).toBe(true);
    expect((await put(ID, 1, OTHER_HASH, 30))[0]!.is_kept).toBe(true);
    expect((await put(OTHER_ID, 1, OTHER_HASH, 30))[0]!.is_kept).toBe(false);
    await expect(put(ID, 3, HASH, 60)).rejects.toMatchObject({ code: "PT413" });
    await put(ID, 2, HASH, 70);
    const parts = await asLogin("select number, bytes::int from content_service.list_parts($1, 0, 10)", [ID]);
    expect(parts).toEqual([
      { number: 1, bytes: 30 },
      { number: 2, bytes: 70 },
    ]);
    const take = "select hash from content_service.take_unused_files('0', 10) as hash order by hash";
    expect(await rowsOf(take)).toEqual([]);
    await asLogin("select content_service.end_upload($1)", [ID]);
    expect(await rowsOf(take)).toEqual([{ hash: HASH }, { hash: OTHER_HASH }]);
  });

  test("content_service.check_unfinished_uploads bounds them, unless content_service.is_upload_bounded says that the role is not", async () => {
    expect(
      await rowsOf(
        "select role, content_service.is_upload_bounded(role) as is_bounded from unnest('{anon,service_role}'::text[]) as role",
      ),
    ).toEqual([
      { role: "anon", is_bounded: true },
      { role: "service_role", is_bounded: false },
    ]);
    await content.owner.query(
      "update content_service.bounds set bound = 1 where name = 'unfinished uploads of a caller'",
    );
    await begin(ID);
    await expect(begin(OTHER_ID)).rejects.toMatchObject({ code: "PT429" });
    await begin(OTHER_ID, "service_role");
    await expect(
      content.owner.query("select content_service.check_unfinished_uploads('user 1', 0)"),
    ).rejects.toMatchObject({
      code: "PT429",
    });
    await content.owner.query(
      "update content_service.bounds set bound = 200 where name = 'unfinished uploads of a caller'",
    );
    await content.owner.query(
      "update content_service.bounds set bound = 150 where name = 'bytes of unfinished uploads of a caller'",
    );
    await content.owner.query("delete from content_service.unfinished_uploads");
    await begin(ID);
    await begin(OTHER_ID);
    await put(ID, 1, HASH, 90);
    await expect(put(OTHER_ID, 1, OTHER_HASH, 90)).rejects.toMatchObject({ code: "PT429" });
    await content.owner.query(
      "update content_service.bounds set bound = 5368709120 where name = 'bytes of unfinished uploads of a caller'",
    );
  });

  test("content_service.check_bucket_usage counts what is not finished, for the bucket and the owner", async () => {
    const reserve = (id: string, owner: string | null, bytes: number) =>
      asLogin(
        "select content_service.begin_upload($1, '', 'user', 'service_role', 'notes', '1/x', $2, '{}', $3, 100)",
        [id, owner, bytes],
      );
    await content.owner.query("update storage.buckets set max_bytes = 100, max_bytes_of_owner = 60 where id = 'notes'");
    await reserve(ID, "1", 60);
    await expect(reserve(ID, "1", 61)).rejects.toMatchObject({ code: "PT413" });
    await expect(reserve(OTHER_ID, null, 41)).rejects.toMatchObject({ code: "PT413" });
    await reserve(OTHER_ID, null, 40);
    await expect(
      content.owner.query("select content_service.check_bucket_usage('{notes}', '{1}')"),
    ).resolves.toBeTruthy();
    await expect(
      content.owner.query("select content_service.add_bucket_usage('{notes}', '{1}', '{1}')"),
    ).rejects.toMatchObject({ code: "PT413" });
    await expect(put(ID, 1, HASH, 10)).rejects.toMatchObject({ code: "PT413" });
    await asLogin("select content_service.end_upload($1)", [ID]);
    await content.owner.query("select content_service.add_bucket_usage('{notes}', '{1}', '{60}')");
  });

  test("content_service.expire_uploads forgets old ones", async () => {
    await begin(ID);
    await begin(OTHER_ID);
    await content.owner.query(
      "update content_service.unfinished_uploads set started_at = now() - interval '2 days' where id = $1",
      [ID],
    );
    await content.owner.query("select content_service.expire_uploads('1 day')");
    expect(await rowsOf("select id from content_service.unfinished_uploads")).toEqual([{ id: OTHER_ID }]);
  });
});

test("content_service.take_unused_files leaves what a transaction that began before may need", async () => {
  await content.owner.query("select content_service.keep_file($1, 3)", [HASH]);
  const backup = await connect(content.database.ownerUrl);
  await backup.query("begin isolation level repeatable read; select from storage.objects");
  await content.owner.query("update content_service.files set released_at = clock_timestamp()");
  const take = "select hash from content_service.take_unused_files('0', 10) as hash";
  expect(await rowsOf(take)).toEqual([]);
  await backup.query("commit");
  await backup.end();
  expect(await rowsOf(take)).toEqual([{ hash: HASH }]);
});
