import type {} from "postgraphile";
import { GraphQLError, Kind } from "postgraphile/graphql";
import { oncePer } from "../engine/once-per.ts";
import { domainScalars } from "./domain-scalars.ts";
import type { Codec } from "./table.ts";
import { readTime, toTime } from "./time.ts";
import { isMoment, LISTS_OF_TIMES, TIMES } from "./time-codec.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      TimeScalarPlugin: true;
    }
  }
}

/** PostGraphile's name -> ours; what it calls Time is the time of a day. */
const NAMES: Readonly<Record<string, string>> = { Datetime: "Time", Time: "LocalTime" };
const LOCAL = "LocalDateTime";

export const TimeScalarPlugin: GraphileConfig.Plugin = {
  name: "TimeScalarPlugin",
  description: "timestamptz is Time: ISO 8601 in UTC, whatever zone the session has",
  before: ["PgCodecsPlugin"],
  inflection: {
    replace: {
      builtin: (previous, _preset, name) => NAMES[name] ?? previous!(name),
    },
  },
  gather: {
    hooks: {
      pgCodecs_findPgCodec(_info, event) {
        const { typname } = event.pgType;
        if (event.pgCodec || event.pgType.getNamespace()?.nspname !== "pg_catalog") return;
        event.pgCodec = (TIMES as Readonly<Record<string, Codec>>)[typname] ?? LISTS_OF_TIMES[typname] ?? null;
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const description = "A date and a time of day, of no particular time zone.";
          build.registerScalarType(
            LOCAL,
            {},
            () => build.stringTypeSpec(description, undefined, LOCAL),
            "TimeScalarPlugin",
          );
          build.setGraphQLTypeForPgCodec(TIMES.timestamptz, ["input", "output"], build.inflection.builtin("Datetime"));
          build.setGraphQLTypeForPgCodec(TIMES.timestamp, ["input", "output"], LOCAL);
          build.setGraphQLTypeForPgCodec(TIMES.date, ["input", "output"], build.inflection.builtin("Date"));
          build.setGraphQLTypeForPgCodec(TIMES.time, ["input", "output"], build.inflection.builtin("Time"));
          build.setGraphQLTypeForPgCodec(TIMES.timetz, ["input", "output"], build.inflection.builtin("Time"));
          const interval = build.inflection.builtin("Interval");
          build.setGraphQLTypeForPgCodec(TIMES.interval, "output", interval);
          build.setGraphQLTypeForPgCodec(TIMES.interval, "input", build.inflection.inputType(interval));
          return _;
        },
      },
      GraphQLScalarType(config, build) {
        if (!namesOfTimes(build).has(config.name)) return config;
        return {
          ...config,
          ...(config.name === NAMES.Datetime && {
            description: "A point in time, ISO 8601 in UTC: `2026-11-20T10:15:00.000Z`.",
          }),
          serialize: (value) => toTime(String(value)),
          parseValue: parse,
          parseLiteral: (node) => parse(node.kind === Kind.STRING ? node.value : undefined),
        };
      },
    },
  },
};

/** Time, and the domains over timestamptz: their values are written and read as its are. */
const namesOfTimes = oncePer(
  (build: GraphileBuild.Build): ReadonlySet<string> => new Set([NAMES.Datetime!, ...domainScalars(build, isMoment)]),
);

function parse(value: unknown): string {
  const time = typeof value === "string" ? readTime(value) : null;
  if (time === null) throw new GraphQLError("A Time is written in ISO 8601, such as 2026-11-20T10:15:00Z.");
  return time;
}
