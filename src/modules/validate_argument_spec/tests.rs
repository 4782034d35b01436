//! Specifications and values, and what is said of them.

use super::super::testing::Bench;

/// What is wrong with the variables, by the specification; both as YAML.
async fn errors(vars: &str, spec: &str) -> Vec<String> {
    let mut bench = Bench::new().await;
    bench.vars(vars);
    let done = bench.run(&format!("validate_argument_spec: {{argument_spec: {spec}}}")).await.unwrap();
    bench.close().await;
    let failed = done.outcome.failed.unwrap_or_default();
    let lines: Vec<String> = failed.lines().skip(1).map(str::to_owned).collect();
    let listed = done.outcome.values.get("argument_errors").map(|errors| errors.len().unwrap()).unwrap_or_default();
    assert_eq!((lines.len(), failed.starts_with("Validation of arguments failed:")), (listed, listed > 0));
    lines
}

#[tokio::test]
async fn what_fits_passes_and_other_variables_do_not_matter() {
    let spec = "{a: {type: int}, b: {type: list, elements: str, required: true}, c: {choices: [x, y], default: x}, \
        d: {type: dict, options: {e: {type: bool}}}, f: {type: path}, g: {type: bytes}, h: {type: raw}}";
    assert!(errors("{a: '5', b: 'p,q', d: {e: 'yes'}, f: ~/x, g: 2 GB, h: [1], other: {}}", spec).await.is_empty());
    assert!(errors("{a: null, b: []}", spec).await.is_empty());
}

#[tokio::test]
async fn what_is_missing_is_named_once() {
    assert_eq!(
        errors("{x: 1}", "{b: {required: true}, a: {required: true}, x: {required: true}}").await,
        ["missing required arguments: a, b"]
    );
}

#[tokio::test]
async fn wrong_types_are_named_with_what_they_are() {
    let spec = "{a: {type: int}, b: {type: bool}, c: {type: dict}, d: {type: list, elements: int}, e: {type: float}}";
    assert_eq!(
        errors("{a: x, b: perhaps, c: [1], d: [1, y], e: {}}", spec).await,
        [
            "argument 'a' is of type str and we were unable to convert to int: \"x\" cannot be converted to an int",
            "argument 'b' is of type str and we were unable to convert to bool: \"perhaps\" cannot be converted to a bool",
            "argument 'c' is of type list and we were unable to convert to dict: list cannot be converted to a dict",
            "Elements value for option 'd' is of type str and we were unable to convert to int: \"y\" cannot be converted to an int",
            "argument 'e' is of type dict and we were unable to convert to float: \"{}\" cannot be converted to a float",
        ]
    );
}

#[tokio::test]
async fn choices_count_for_values_and_for_the_items_of_lists() {
    let spec = "{a: {choices: [x, y]}, b: {type: list, elements: str, choices: [p, q]}, c: {choices: ['yes', maybe]}}";
    assert_eq!(
        errors("{a: z, b: [p, r], c: true}", spec).await,
        ["value of a must be one of: x, y, got: z", "value of b must be one or more of: p, q. Got no match for: r"]
    );
}

#[tokio::test]
async fn what_is_inside_is_checked_with_its_place() {
    let spec = "{m: {type: list, elements: dict, required_together: [[p, q]], required_one_of: [[n, o]], \
        mutually_exclusive: [[n, o]], required_if: [[n, all, [p]]], required_by: {o: [q]}, \
        options: {n: {}, o: {}, p: {}, q: {}, deep: {type: dict, options: {i: {type: int, required: true}}}}}}";
    assert_eq!(errors("{m: [{n: x, z: 1}]}", spec).await, ["m.z. Supported parameters include: deep, n, o, p, q."]);
    assert_eq!(
        errors("{m: [{n: x, o: y, q: 1, p: 1}]}", spec).await,
        ["parameters are mutually exclusive: n|o found in m"]
    );
    assert_eq!(
        errors("{m: [{p: x}]}", spec).await,
        ["parameters are required together: p, q found in m", "one of the following is required: n, o found in m"]
    );
    assert_eq!(errors("{m: [{n: all}]}", spec).await, ["n is all but all of the following are missing: p found in m"]);
    assert_eq!(errors("{m: [{o: x}]}", spec).await, ["missing parameter(s) required by 'o': q found in m"]);
    assert_eq!(
        errors("{m: [{n: x, deep: {}}, {n: x, deep: {i: no}}]}", spec).await,
        ["missing required arguments: i found in m -> deep",]
    );
    assert_eq!(errors("{m: [1]}", spec).await.last().unwrap(), "value of 'm' must be of type dict or list of dicts");
}

#[tokio::test]
async fn arguments_that_are_given_count_before_variables_and_may_have_other_names() {
    let mut bench = Bench::new().await;
    bench.vars("{a: x}");
    let task = "validate_argument_spec: {argument_spec: {a: {type: int, aliases: [b]}}, provided_arguments: {b: 5}, \
        validate_args_context: {name: here}}";
    let done = bench.check(task).await.unwrap();
    assert_eq!(done.outcome.message.as_deref(), Some("The arg spec validation passed"));
    assert_eq!(done.outcome.values["validate_args_context"].to_string(), "{'name': 'here'}");
    let task = "validate_argument_spec: {argument_spec: {a: {}}, provided_arguments: {stranger: 1}}";
    assert!(bench.failure(task).await.ends_with("stranger. Supported parameters include: a."));
    bench.close().await;
}

#[tokio::test]
async fn a_secret_is_not_reported() {
    let spec = "{a: {type: int, no_log: true}, b: {choices: [x], no_log: true}}";
    let said = errors("{a: hunter2, b: hunter3}", spec).await.join("\n");
    assert!(said.lines().count() == 2 && !said.contains("hunter"), "{said}");
}
