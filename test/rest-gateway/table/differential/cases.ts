import type { Area } from "./case.ts";
import { calls } from "./cases/calls.ts";
import { embeds } from "./cases/embeds.ts";
import { filters } from "./cases/filters.ts";
import { generated } from "./cases/generated.ts";
import { media } from "./cases/media.ts";
import { pages } from "./cases/pages.ts";
import { callers, refusals } from "./cases/refusals.ts";
import { methods, preferences, profiles } from "./cases/requests.ts";
import { select } from "./cases/select.ts";
import * as settings from "./cases/settings.ts";
import { types } from "./cases/types.ts";
import { deletes, inserts, updates, upserts } from "./cases/writes.ts";

export const AREAS: readonly Area[] = [
  select,
  types,
  filters,
  embeds,
  pages,
  inserts,
  updates,
  deletes,
  upserts,
  calls,
  media,
  profiles,
  preferences,
  methods,
  refusals,
  callers,
  ...Object.values(settings),
  generated,
];
