import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { until } from "../../until.ts";
import { makeRandom } from "../queries/random.ts";
import { openRestartedFixture, readShapeAs } from "./restarted-service.ts";

const SCHEMA = `
  create table public.rooms (id int primary key, is_open bool not null);
  create table public.guests (room int, person text, primary key (room, person));
  create table public.letters (id int primary key, room int not null, body text not null);
  alter table public.letters enable row level security;
  create policy of_room on public.letters for select using (
    exists (select from public.rooms r where r.id = room and is_open)
    or exists (select from public.guests g where g.room = letters.room and person = auth.jwt() ->> 'sub'));
  grant select on public.rooms, public.guests, public.letters to authenticated`;

const PEOPLE = ["ann", "bob", "cem"];
const WHERES = ["true", "room in (1, 2)", "body like 'b1%'", "id < 20"];
const READERS = 12;
const KILLS_PER_RUN = 4;

const service = useFixture(() => openRestartedFixture(SCHEMA));

function randomStatement(random: (below: number) => number): string {
  const [room, id, person] = [1 + random(4), 1 + random(40), PEOPLE[random(3)]!];
  return [
    `insert into public.letters values (${id}, ${room}, 'b${random(30)}')
      on conflict (id) do update set (room, body) = (excluded.room, excluded.body)`,
    `update public.letters set body = 'b${random(30)}' where id between ${id} and ${id + 3}`,
    `delete from public.letters where id = ${id}`,
    `insert into public.rooms values (${room}, ${random(2) === 0}) on conflict (id) do update set is_open = excluded.is_open`,
    `insert into public.guests values (${room}, '${person}') on conflict do nothing`,
    `delete from public.guests where person = '${person}' and room = ${room}`,
    `drop policy of_room on public.letters; create policy of_room on public.letters for select using (
      room > ${random(3)} or exists (select from public.guests g where g.room = letters.room and person = auth.jwt() ->> 'sub'))`,
  ][random(random(20) === 0 ? 7 : 6)]!;
}

test.each(Array.from({ length: propertyRuns(2) }, (_, seed) => seed + 1))(
  "clients of a service that is killed at random moments, under writes, miss nothing and begin never anew (seed %i)",
  async (seed) => {
    const random = makeRandom(seed);
    const { owner } = service;
    const followers = Array.from({ length: READERS }, () => {
      const [person, where] = [PEOPLE[random(3)]!, WHERES[random(WHERES.length)]!];
      const claims = { sub: person, number: random(2) };
      return { person, where, follower: service.follow({ table: "letters", where, claims, liveSse: random(3) === 0 }) };
    });
    const areEqual = async () => {
      for (const { person, where, follower } of followers) {
        const expected = await readShapeAs(owner, { table: "letters", where, claims: { sub: person } });
        await until(() => JSON.stringify(follower.rows()) === JSON.stringify(expected));
      }
    };
    await until(() => followers.every(({ follower }) => follower.stream.isUpToDate));
    for (let kill = 0; kill < KILLS_PER_RUN; kill++) {
      let isWriting = true;
      const writing = (async () => {
        while (isWriting) await owner.query(`begin; ${randomStatement(random)}; ${randomStatement(random)}; commit`);
      })();
      await sleep(random(500));
      await service.restart(random(4) === 0 ? "SIGTERM" : "SIGKILL", () => sleep(random(300)));
      await sleep(random(1000));
      isWriting = false;
      await writing;
      await areEqual();
    }
    expect(followers.map(({ follower }) => follower.refetches())).toEqual(followers.map(() => 0));
  },
);
