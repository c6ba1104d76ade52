import { GraphQLError, Kind } from "grafast/graphql";
import { findBuiltInCodec } from "./codecs.ts";
import { scalarNamesOver } from "./graphql-types.ts";
import { isInstantCodec, parseIsoTime, TIME_CODECS, TIME_LIST_CODECS, toIsoTime } from "./time-codecs.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      TimeScalarPlugin: true;
    }
  }
}

/** PostGraphile's name → ours. Its `Time` is a time of day. */
const SCALAR_NAMES: Readonly<Record<string, string>> = { Datetime: "Time", Time: "LocalTime" };
const LOCAL_DATE_TIME = "LocalDateTime";

export const TimeScalarPlugin: GraphileConfig.Plugin = {
  name: "TimeScalarPlugin",
  description: "timestamptz is Time: ISO 8601 in UTC, whatever the session's time zone",
  before: ["PgCodecsPlugin"],
  inflection: {
    replace: {
      builtin: (previous, _preset, name) => SCALAR_NAMES[name] ?? previous!(name),
    },
  },
  gather: {
    hooks: {
      pgCodecs_findPgCodec: findBuiltInCodec({ ...TIME_CODECS, ...TIME_LIST_CODECS }),
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const description = "A date and time without a time zone.";
          build.registerScalarType(
            LOCAL_DATE_TIME,
            {},
            () => build.stringTypeSpec(description, undefined, LOCAL_DATE_TIME),
            "TimeScalarPlugin",
          );
          build.setGraphQLTypeForPgCodec(
            TIME_CODECS.timestamptz,
            ["input", "output"],
            build.inflection.builtin("Datetime"),
          );
          build.setGraphQLTypeForPgCodec(TIME_CODECS.timestamp, ["input", "output"], LOCAL_DATE_TIME);
          build.setGraphQLTypeForPgCodec(TIME_CODECS.date, ["input", "output"], build.inflection.builtin("Date"));
          build.setGraphQLTypeForPgCodec(TIME_CODECS.time, ["input", "output"], build.inflection.builtin("Time"));
          build.setGraphQLTypeForPgCodec(TIME_CODECS.timetz, ["input", "output"], build.inflection.builtin("Time"));
          const interval = build.inflection.builtin("Interval");
          build.setGraphQLTypeForPgCodec(TIME_CODECS.interval, "output", interval);
          build.setGraphQLTypeForPgCodec(TIME_CODECS.interval, "input", build.inflection.inputType(interval));
          return _;
        },
      },
      GraphQLScalarType(config, build) {
        if (!timeScalarNames(build).has(config.name)) return config;
        return {
          ...config,
          ...(config.name === SCALAR_NAMES.Datetime && {
            description: "A point in time, ISO 8601 in UTC: `2026-11-20T10:15:00.000Z`.",
          }),
          serialize: (value) => toIsoTime(String(value)),
          parseValue: parseTimeInput,
          parseLiteral: (node) => parseTimeInput(node.kind === Kind.STRING ? node.value : undefined),
        };
      },
    },
  },
};

const timeScalarNames = scalarNamesOver("Datetime", isInstantCodec);

function parseTimeInput(value: unknown): string {
  const time = typeof value === "string" ? parseIsoTime(value) : null;
  if (time === null) throw new GraphQLError("Time must be ISO 8601, such as 2026-11-20T10:15:00Z.");
  return time;
}
