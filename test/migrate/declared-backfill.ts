import { runBackfills } from "../../migrate/backfill.ts";
import type { TestDatabase } from "../database.ts";

/** Declares one of `public.items.cents`, by hand. */
export const BACKFILL_SQL = `
  create table public.items (id int primary key, price int, cents int);
  insert into public.items select i, i from generate_series(1, 30000) as i;
  create function public.fill_cents() returns trigger language plpgsql as $$ begin NEW.cents := NEW.price * 100; return NEW; end $$;
  create trigger fill before insert or update on public.items for each row execute function public.fill_cents();
  alter table public.items add constraint cents_filled check (cents is not distinct from price * 100) not valid;
  comment on constraint cents_filled on public.items is '@backfill cents';
  analyze public.items;`;

export const END_BACKFILL = "select pg_terminate_backend(pid) from graphile_migrate.backfills";

/** Runs it with little load, so that it lasts. Resolves when it has ended, also when its session is ended by END_BACKFILL. */
export function runSlowBackfill({ ownerUrl }: TestDatabase): Promise<unknown> {
  return runBackfills(ownerUrl, { load: 1, report: () => {} }).catch((error: Error) => error);
}
