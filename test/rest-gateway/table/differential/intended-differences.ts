import type { Answer } from "./answer.ts";
import type { Case } from "./case.ts";

export type Difference = {
  /** The release of PostgREST that changed it, or "ours". */
  readonly since: string;
  readonly why: string;
  /**
   * Converts the answer of PostgREST 12 to that of today; null if the answer has nothing to do with this.
   * Without it the case itself has the answer of ours.
   */
  readonly today?: (theirs: Answer, ours: Answer, request: Case) => Answer | null;
};

type ErrorBody = {
  readonly code: string;
  readonly message: string;
  readonly details: unknown;
  readonly hint: unknown;
};

/** Each is one that we want. One that no case shows any more fails the tests, and so does a difference that is not here. */
export const INTENDED = {
  // Missing relations and functions

  "a table that is not there": {
    since: "13.0.0",
    why: "PGRST205 from the schema cache instead of Postgres's 42P01; its hint names a table that is spelt alike",
    today: (theirs, ours) => {
      const name = /^relation "(\w+\..*)" does not exist$/.exec(errorOf(theirs)?.message ?? "")?.[1];
      if (errorOf(theirs)?.code !== "42P01" || name === undefined || name.startsWith("nowhere.")) return null;
      return withError(theirs, tableNotFound(name, ours));
    },
  },
  "a path that is not there": {
    since: "13.0.0",
    why: "PGRST125 or PGRST205 instead of an empty object",
    today: (theirs, ours, request) => {
      if (theirs.status !== 404 || JSON.stringify(theirs.body) !== "{}") return null;
      const table = /^\/([^/?]+)(\?|$)/.exec(request.path)?.[1];
      if (table !== undefined) return withBody(theirs, { details: null, ...tableNotFound(`api.${table}`, ours) });
      const message = "Invalid path specified in request URL";
      return withBody(theirs, { code: "PGRST125", details: null, hint: null, message });
    },
  },
  "what is no table of its own": {
    since: "13.0.0",
    why: "partitions, sequences and composite types are no resources",
  },
  "the table is looked for first": {
    since: "13.0.0",
    why: "PGRST205 before relations are looked for and before the function of PGRST_DB_PRE_REQUEST is called",
  },
  "a column that is not there": {
    since: "12.0.3",
    why: "PGRST204 says that it looked in the schema cache",
    today: (theirs) => {
      const found = /^Column '(.*)' of relation '(.*)' does not exist$/s.exec(errorOf(theirs)?.message ?? "");
      if (!found) return null;
      const message = `Could not find the '${found[1]}' column of '${found[2]}' in the schema cache`;
      return withError(theirs, { message });
    },
  },
  "a function that resembles": {
    since: "14.6",
    why: "a hint needs more likeness, so that names are not given away",
    today: (theirs, ours) =>
      errorOf(theirs)?.code === "PGRST202" && errorOf(ours)?.hint === null ? withError(theirs, { hint: null }) : null,
  },
  "a schema that is not served": {
    since: "13.0.7",
    why: "the message of PGRST106 names the schema, its hint those that are served",
    today: (theirs, _ours, request) => {
      const schemas = /^The schema must be one of the following: (.*)$/.exec(errorOf(theirs)?.message ?? "")?.[1];
      if (schemas === undefined) return null;
      const profile = request.headers["Accept-Profile"] ?? request.headers["Content-Profile"];
      const hint = `Only the following schemas are exposed: ${schemas}`;
      return withError(theirs, { message: `Invalid schema: ${profile}`, hint });
    },
  },
  "aliases in messages": {
    since: "ours",
    why: "the name under which a statement knows a relation is nobody's business",
    today: (theirs, ours) => {
      const unqualified = (answer: Answer) => errorOf(answer)?.message.replace(/^column \S+\./, "column ");
      if (errorOf(theirs)?.code !== "42703" || unqualified(theirs) !== unqualified(ours)) return null;
      return withError(theirs, { message: errorOf(ours)!.message });
    },
  },

  // Syntax errors

  "what is takes": {
    since: "13.0.0",
    why: "the words for it name not_null too",
    today: (theirs) => {
      const details = String(errorOf(theirs)?.details);
      const words = "null or trilean value (unknown, true, false)";
      if (!details.includes(words)) return null;
      const today = "isVal: (null, not_null, true, false, unknown)";
      return withError(theirs, { details: details.replace(words, today) });
    },
  },
  "is.not_null": { since: "13.0.0", why: "not_null is a value of is" },
  "what follows a star": {
    since: "ours",
    why: "it is unreadable; PostgREST drops it and selects all columns",
    today: (_theirs, ours, { path }) =>
      /[?&]select=(|[^&]*[,(])\*[^,)&]/.test(path) && errorOf(ours)?.code === "PGRST100" ? ours : null,
  },
  "a logic tree without brackets": {
    since: "ours",
    why: "or=id.eq.1 is unreadable; PostgREST looks for a column orid",
  },
  "a relation inside a logic tree": {
    since: "ours",
    why: "or=(artists.name.eq.x) reaches into a relation, which PostgREST cannot read",
    today: (theirs, ours) =>
      /failed to parse logic tree/.test(errorOf(theirs)?.message ?? "") && errorOf(ours)?.code === "PGRST200"
        ? ours
        : null,
  },
  "a limit that is no number": {
    since: "ours",
    why: "it is no limit, as without an offset; PostgREST takes it for zero then",
    today: (theirs, ours, { path }) =>
      errorOf(theirs)?.code === "PGRST103" && /[?&]limit=(?!\d+(&|$))/.test(path) && /[?&]offset=/.test(path)
        ? ours
        : null,
  },
  "numbers beyond bigint": { since: "ours", why: "a page that Postgres cannot count to is empty, or all there is" },
  "bytes that are no text": {
    since: "ours",
    why: "22021 as Postgres would say; PostgREST cuts the value off there, or fails",
    today: (_theirs, ours, { path }) =>
      /%00|%FF/i.test(path) && ours.status === 400 && errorOf(ours)?.code === "22021" ? ours : null,
  },
  "a cast to what is no type": {
    since: "ours",
    why: "42704, however it is spelt; PostgREST writes the name into its statement as it came",
    today: (theirs, ours) =>
      errorOf(theirs)?.code === "42601" && errorOf(ours)?.code === "42704" && ours.status === 400 ? ours : null,
  },
  "a filter on a composite": {
    since: "ours",
    why: "the value has the type of the column, so that keys can be composites",
    today: (theirs, ours) =>
      errorOf(theirs)?.message === "input of anonymous composite types is not implemented" &&
      (ours.status === 200 || errorOf(ours)?.code === "22P02")
        ? ours
        : null,
  },
  "an apikey in the address": { since: "ours", why: "it is a credential" },
  "JSON that only Postgres finds wrong": {
    since: "ours",
    why: "a body is read by Postgres alone, which tells more than that it is invalid",
  },
  "lines of CSV that are too short or too long": { since: "ours", why: "they are refused, the only line too" },
  "words for CSV that cannot be read": { since: "ours", why: "PostgREST's are those of its parser" },

  // Reads

  "a document is searched as text": { since: "13.0.0", why: "to_tsvector is applied to what is no tsvector" },
  "an alias hides the name": {
    since: "16.0",
    why: "of two relations of one name that without an alias is filtered by it, whichever comes first",
  },
  "another filter than null on a relation": { since: "ours", why: "PGRST120 says what is wrong, 42703 does not" },
  "a relation twice": {
    since: "ours",
    why: "PostgREST's statement uses one name twice, also where the answer does not",
  },
  "relations of one table, nested": {
    since: "ours",
    why: "PostgREST's statement takes a relation for the table of the same name",
    today: (theirs, ours) =>
      /^cannot cast type jsonb to /.test(errorOf(theirs)?.message ?? "") && ours.status < 300 ? ours : null,
  },
  "an index before a bracket": {
    since: "ours",
    why: "works(details->media->0) asks for the first; PostgREST takes 0 for a name there",
    today: (theirs, ours, { path }) =>
      /->>?-?\d+\)/.test(path) && theirs.status === ours.status && theirs.status < 300 ? ours : null,
  },
  "an empty spread": { since: "13.0.5", why: "no columns are spread; it was a broken statement" },
  "to many, spread": { since: "13.0.0", why: "each column becomes a list" },
  "empty relations inside a relation": { since: "12.2.2", why: "what selects nothing at any depth is left out" },
  "unselected columns of a relation": { since: "ours", why: "rows may be ordered by them" },
  "unselected columns of a call": {
    since: "13.0.0",
    why: "the rows of a call may be filtered by them; ours may be ordered by them too",
  },
  "aggregates inside a spread": { since: "13.0.0", why: "they are refused there too when they are switched off" },
  "aggregates by name": {
    since: "ours",
    why: "`select=json_agg` calls an aggregate, too, and those are switched off; `count` alone is documented without parentheses",
  },
  "a hidden column in a hint": {
    since: "ours",
    why: "Postgres suggests columns that the caller may not read",
  },
  "one scalar of many": {
    since: "ours",
    why: "it is the scalar, as in a list, not an object with a name of PostgREST's",
  },
  "one row, left out": {
    since: "ours",
    why: "a function's row that a filter leaves out is no row; PostgREST counts it without looking",
  },
  "no headers beyond the end": {
    since: "ours",
    why: "416 is an error, and has the headers of one",
    today: (theirs) => {
      if (theirs.status !== 416) return null;
      const { "content-type": type, "content-range": range } = theirs.headers;
      return {
        ...theirs,
        headers: { ...(type && { "content-type": type }), ...(range && { "content-range": range }) },
      };
    },
  },
  "more or less than one row": {
    since: "13.0.0",
    why: "the message of PGRST116 no longer speaks of JSON objects, its details count the rows",
    today: (theirs) => {
      const rows = /\b(\d+) rows/.exec(String(errorOf(theirs)?.details))?.[1];
      if (errorOf(theirs)?.code !== "PGRST116") return null;
      const message = "Cannot coerce the result to a single JSON object";
      return withError(theirs, { message, details: `The result contains ${rows} rows` });
    },
  },

  // Writes

  "the order of written rows": { since: "13.0.0", why: "order= orders what comes back" },
  "limits of writes": { since: "13.0.0", why: "limit= no longer limits a write" },
  "limits of relations after a write": { since: "ours", why: "they are those of a read" },
  "a logic tree chooses written rows": { since: "14.4", why: "or= is no filter of what comes back" },
  "the default of a column of a domain": { since: "12.2.4", why: "missing=default takes the column's" },
  "an empty select after a write": { since: "ours", why: "it is all columns, as of a read; PostgREST gives the key" },
  "PUT of a row without its key": { since: "ours", why: "PGRST115 says what is wrong, 42703 does not" },
  "max-affected": { since: "12.2.0", why: "a preference that limits writes, and since 13.0.3 calls" },
  "an address of odd letters": {
    since: "ours",
    why: "what an address cannot hold is escaped, in the name of the table too",
    today: (theirs) => {
      const { location } = theirs.headers;
      if (location === undefined || /^[!-~]*$/.test(location)) return null;
      const [path = "", query = ""] = location.split(/(\?.*)/s);
      const escaped = encodeURI(Buffer.from(path, "latin1").toString("utf8")) + query;
      return { ...theirs, headers: { ...theirs.headers, location: escaped } };
    },
  },

  // Calls

  "a JSON argument by GET": { since: "13.0.0", why: "it is the JSON, not a text that holds it" },
  "a named parameter takes no whole body": { since: "14.2", why: "only one without a name does" },
  "the whole body is the argument": {
    since: "ours",
    why: "of a function of one unnamed json parameter, whatever JSON it is; PostgREST empties what is no object",
  },
  "params=single-object": { since: "13.0.0", why: "this preference is gone" },

  // Responses

  "an unknown time zone": { since: "16.0", why: "it is Postgres's error, whatever the handling is" },
  "a time zone by its hours": { since: "16.0", why: "an offset is a preference for a time zone too" },
  "a media type that is not made": {
    since: "12.0.3",
    why: "406 instead of 415",
    today: (theirs) => (theirs.status === 415 ? { ...theirs, status: 406 } : null),
  },
  "media types in capitals": { since: "12.2.0", why: "letters of media types may be of any case" },
  "media types made in SQL, of selected columns": {
    since: "12.0.3",
    why: "one that is made of whole rows is none for some columns; one of any rows is",
  },
  "GeoJSON without PostGIS": { since: "ours", why: "it is no media type then, not a function that is missing" },
  "methods that would do": {
    since: "ours",
    why: "405 tells them in Allow (RFC 9110)",
    today: ({ headers, ...theirs }, ours) =>
      theirs.status === 405 && ours.headers.allow !== undefined
        ? { ...theirs, headers: { ...headers, allow: ours.headers.allow } }
        : null,
  },
  "the code in a header": {
    since: "13.0.0",
    why: "Proxy-Status has the error's code, also where HEAD has no body",
    today: ({ headers, ...theirs }, ours) => {
      const { "proxy-status": result } = ours.headers;
      const code = errorOf(ours)?.code;
      if (result === undefined || (code !== undefined && result !== `PostgREST; error=${code}`)) return null;
      return { ...theirs, headers: { ...headers, "proxy-status": result } };
    },
  },
  "writes at the root": { since: "13.0.0", why: "405 and PGRST117 instead of 404" },
  "no document at the root": { since: "13.0.0", why: "PGRST126 instead of an empty object" },
  "OPTIONS asks about a name": { since: "ours", why: "it needs no arguments" },
  "the statuses of errors": {
    since: "12.0.3 to 13.0.1",
    why: "faults of the database are 500, a token for a role that does not exist is 401",
    today: (theirs) => {
      const error = errorOf(theirs);
      if (error === null) return null;
      const isSubquery = error.code === "21000" && !error.message.endsWith("requires a WHERE clause");
      if (isSubquery || /^(42P17|53400|54...)$/.test(error.code)) return { ...theirs, status: 500 };
      if (error.code !== "22023") return null;
      if (!/^role .* does not exist$/.test(error.message)) return null;
      return { ...theirs, status: 401, headers: { ...theirs.headers, "www-authenticate": "present" } };
    },
  },
  "faults of the server": {
    since: "ours",
    why: "what went wrong inside Postgres (58, XX) is for the log, where the request's id finds it",
    today: (theirs, ours) =>
      /^(58|XX)...$/.test(errorOf(theirs)?.code ?? "") && ours.status === 500
        ? withError(theirs, { message: "Internal error", details: null, hint: errorOf(ours)?.hint ?? null })
        : null,
  },
  "what is wrong with a raised PGRST": {
    since: "12.2.0",
    why: "the details and the hint of PGRST121 tell it",
    today: (theirs, _ours, request) => {
      if (errorOf(theirs)?.code !== "PGRST121") return null;
      const raised = request.body === null ? { message: "x", detail: "" } : JSON.parse(String(request.body));
      return withError(theirs, faultOfRaised(raised));
    },
  },
  "a token for a role that is not served": {
    since: "ours",
    why: "it is no good here: 401, whether there is no such role or the service may not take it",
  },
  "an Authorization header of another scheme": {
    since: "ours",
    why: "who shows something that cannot be read is told so, and not taken for anonymous",
  },
  "an empty token": { since: "13.0.0", why: "it is a token that cannot be read, and not none" },
  "words for tokens": {
    since: "13.0.0",
    why: "what is wrong with the claims is PGRST303; the words are clearer",
    today: (theirs, ours) => {
      if (errorOf(theirs)?.code !== "PGRST301") return null;
      const isAboutClaims = /^JWT(expired| expired|NotYetValid)/.test(errorOf(theirs)!.message);
      return withError(theirs, {
        code: isAboutClaims ? "PGRST303" : "PGRST301",
        message: errorOf(ours)?.message ?? "",
        details: errorOf(ours)?.details,
      });
    },
  },
} satisfies Record<string, Difference>;

export type IntendedDifference = keyof typeof INTENDED;

function errorOf({ body }: Answer): ErrorBody | null {
  return typeof body === "object" && body !== null && "hint" in body ? (body as ErrorBody) : null;
}

function withBody(answer: Answer, body: unknown): Answer {
  return { ...answer, body, columns: null };
}

function withError(answer: Answer, changes: Partial<ErrorBody>): Answer {
  return withBody(answer, { ...errorOf(answer), ...changes });
}

function tableNotFound(name: string, ours: Answer): Pick<ErrorBody, "code" | "message" | "hint"> {
  const message = `Could not find the table '${name}' in the schema cache`;
  return { code: "PGRST205", message, hint: errorOf(ours)?.hint ?? null };
}

function faultOfRaised({ message, detail = "" }: { message: string; detail?: string }): Partial<ErrorBody> {
  const said = "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error";
  const isMessage = /^\{.*"code":"/.test(message) && /"message":"/.test(message);
  return isMessage
    ? {
        message: said,
        details: `Invalid JSON value for DETAIL: '${detail}'`,
        hint: "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: 'status_text'.",
      }
    : {
        message: said,
        details: `Invalid JSON value for MESSAGE: '${message}'`,
        hint: "MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: 'details', 'hint'.",
      };
}
