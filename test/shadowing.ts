import type pg from "pg";

/** The schema of the objects that shadow those of Postgres. */
export const SHADOWS = "shadows";

const FUNCTION_TYPES = "text varchar name int4 int8 bool json jsonb oid regclass record text[] anyelement";
const THIRD_TYPES = "text int4 bool json";
const OPERAND_TYPES = "text varchar int4 int8 bool json jsonb numeric float8 timestamptz interval record text[] json[]";
const OPERATORS = "= <> < > <= >= || -> ->> #>> + - * / ~ ~~ ~* ~~* @> <@ && @@ ^@";

/**
 * Creates functions and operators with these names for operands that fit as well as those of Postgres, or better: Postgres prefers the best
 * match wherever it is on the search path. Each fails when it is called, and says its name.
 */
export async function createShadows(owner: pg.ClientBase, names: readonly string[]): Promise<void> {
  await owner.query(`
    set check_function_bodies = off;
    create schema ${SHADOWS};
    grant usage on schema ${SHADOWS} to public`);
  await owner.query(`begin; set local search_path = pg_catalog; do $do$ ${SHADOWS_OF_FUNCTIONS(names)} $do$; commit`);
  await owner.query(`begin; set local search_path = pg_catalog; do $do$ ${SHADOWS_OF_OPERATORS} $do$; commit`);
  await owner.query(`reset check_function_bodies; grant execute on all functions in schema ${SHADOWS} to public`);
}

const list = (types: string) => `string_to_array('${types}', ' ')`;

const SHADOWS_OF_FUNCTIONS = (names: readonly string[]) => `
  declare
    v_each record;
  begin
    for v_each in
      with called as (
        select proname as name, pronargs::int as arity, bool_or(provariadic <> 0) over (partition by proname) as is_variadic from pg_proc
        where pronamespace = 'pg_catalog'::regnamespace and proname = any ('{${names}}')
      ),
      signature as (
        select name, first as arguments from called, unnest(${list(FUNCTION_TYPES)}) as first
        where arity = 1 and not is_variadic or is_variadic and first <> 'text[]'
        union
        select name, first || ', ' || second from called, unnest(${list(FUNCTION_TYPES)}) as first, unnest(${list(FUNCTION_TYPES)}) as second
        where arity = 2 or is_variadic
        union
        select name, first || ', ' || second || ', ' || third
        from called, unnest(${list(FUNCTION_TYPES)}) as first, unnest(${list(THIRD_TYPES)}) as second, unnest(${list(THIRD_TYPES)}) as third
        where arity = 3 or is_variadic
        union
        select name, 'variadic ' || kind from called, unnest('{text[], anyarray}'::text[]) as kind where is_variadic
      )
      select format(
        'create function ${SHADOWS}.%I(%s) returns text language plpgsql as %L', name, arguments,
        format('begin raise exception %L; end', 'shadowed: ' || name || '(' || arguments || ')')
      ) as statement
      from signature
    loop
      execute v_each.statement;
    end loop;
  end`;

const SHADOWS_OF_OPERATORS = `
  declare
    v_left text;
    v_right text;
    v_name text;
  begin
    foreach v_left in array ${list(OPERAND_TYPES)} loop
      foreach v_right in array ${list(OPERAND_TYPES)} loop
        execute format(
          'create function ${SHADOWS}.operate(%s, %s) returns boolean language plpgsql as %L', v_left, v_right,
          format('begin raise exception %L; end', 'shadowed operator: ' || v_left || ' and ' || v_right)
        );
        foreach v_name in array ${list(OPERATORS)} loop
          -- Comparisons of two values of one type are those of the column's type, which may be defined by its owner.
          continue when v_left = v_right and v_name in ('=', '<>', '<', '>', '<=', '>=', '~~', '~~*', '~', '~*');
          continue when v_name in ('@>', '<@', '&&');
          execute format(
            'create operator ${SHADOWS}.%s (leftarg = %s, rightarg = %s, function = ${SHADOWS}.operate)', v_name, v_left, v_right
          );
        end loop;
      end loop;
    end loop;
  end`;
