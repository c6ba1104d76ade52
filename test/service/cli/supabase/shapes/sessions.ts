import { ALICE, BOB, type Shape, USERS } from "./shape.ts";

/** Who calls, and what projects do with the tables of Supabase Auth. */
export const SESSION_SHAPES: readonly Shape[] = [
  {
    name: "claims where there is no request: seeds with single claims, and functions for the service role that a job runs",
    files: {
      "migrations/20240101000000_claims.sql": `
        create table public.notes (id int primary key, owner uuid default auth.uid(), role text default auth.role(), email text default auth.email());
        create function public.clean_up() returns text language plpgsql security definer set search_path = '' as $$
        begin
          if auth.role() <> 'service_role' then raise exception 'Only for the service role' using errcode = '42501'; end if;
          return coalesce(auth.role(), 'job');
        end $$;
        create function public.own_role() returns text language sql stable as $$ select auth.role() $$;`,
      "seed.sql": `${USERS}
        select set_config('request.jwt.claim.sub', '${ALICE}', true), set_config('request.jwt.claim.role', 'authenticated', true), set_config('request.jwt.claim.email', 'alice@example.org', true);
        insert into notes (id) values (1);
        select set_config('request.jwt.claim.sub', '', true), set_config('request.jwt.claim.role', '', true), set_config('request.jwt.claim.email', '', true);
        insert into notes (id) values (2);
        select clean_up();`,
    },
    checks: [
      {
        as: "owner",
        sql: "select * from notes order by id",
        rows: [
          [1, ALICE, "authenticated", "alice@example.org"],
          [2, null, null, null],
        ],
      },
      { as: "service_role", sql: "select clean_up()", rows: [["service_role"]] },
      { as: ALICE, sql: "select clean_up()", error: "42501" },
      { as: "anon", sql: "select clean_up()", error: "42501" },
      {
        as: ALICE,
        sql: `select auth.uid() from set_config('request.jwt.claim.sub', '${BOB}', true)`,
        rows: [[ALICE]],
      },
      {
        as: ALICE,
        sql: `select own_role() from set_config('request.jwt.claims', '{"role": "service_role"}', true)`,
        rows: [["authenticated"]],
      },
      { as: ALICE, sql: "select auth.is_admin()", rows: [[false]] },
    ],
  },
];
