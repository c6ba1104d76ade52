export { makeTableInterface, makeTablePlanner, preRequestStatement, tableParseSettings } from "./dialect.ts";
