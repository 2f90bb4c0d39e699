# ruff: noqa: E501, SIM905  (word lists: splitting their lines would hide what belongs together)
"""Short Python functions: about sixty tasks, many ways to ask, each with tests."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .words import Turn, cap, held_out, pick, typed

Case = tuple[tuple[Any, ...], Any]


@dataclass(frozen=True)
class Task:
    """One function: how it is asked for, how it is written, how it is tested."""

    name: str
    params: str
    body: str  # lines, without the indentation; {n} the constant
    says: tuple[str, ...]  # ways to name the task, verb first; the first is used in the answer
    nouns: tuple[str, ...] = ()  # ways to name it without a verb
    cases: Callable[[Any], list[Case]] = lambda n: []
    constants: tuple[Any, ...] = ()
    call: str = ""  # an example call without the name, and what it gives
    gives: str = ""


N = tuple(range(2, 31))
LETTERS = tuple("abcdefghiklmnoprstuw")
WORDS = tuple(
    "hello hi yes ok no bye wow stop go cat dog sun python good star moon red fun".split()
)


def T(name: str, params: str, body: str, says: str, nouns: str = "", **more: Any) -> Task:
    """A task with its wordings in one string each, separated by semicolons."""
    split = lambda text: tuple(part.strip() for part in text.split(";") if part.strip())  # noqa: E731
    return Task(name, params, body, split(says), split(nouns), **more)


TASKS = [
    T("add", "a, b", "return a + b",
      "add two numbers; return the sum of two numbers; sum two numbers; compute a plus b; "
      "add a and b; add two values together; give the sum of a and b; take two numbers and add them",
      "the sum of two numbers; adding two numbers; addition; addition of two numbers",
      cases=lambda n: [((2, 3), 5), ((-1, 1), 0)], call="2, 3", gives="5"),
    T("subtract", "a, b", "return a - b",
      "subtract two numbers; subtract b from a; return the difference of two numbers; "
      "compute a minus b; take one number away from another; give the difference of a and b",
      "the difference of two numbers; subtraction; subtracting two numbers",
      cases=lambda n: [((5, 3), 2), ((1, 4), -3)], call="5, 3", gives="2"),
    T("multiply", "a, b", "return a * b",
      "multiply two numbers; return the product of two numbers; compute a times b; "
      "multiply a and b; give the product of a and b; multiply two values",
      "the product of two numbers; multiplication; multiplying two numbers",
      cases=lambda n: [((2, 3), 6), ((4, 0), 0)], call="2, 3", gives="6"),
    T("divide", "a, b", "return a / b",
      "divide two numbers; divide a by b; return the quotient of two numbers; "
      "compute a divided by b; give the quotient of a and b; divide one number by another",
      "the quotient of two numbers; division; dividing two numbers",
      cases=lambda n: [((6, 3), 2), ((1, 2), 0.5)], call="6, 3", gives="2.0"),
    T("remainder", "a, b", "return a % b",
      "return the remainder of a divided by b; compute a modulo b; find the remainder; "
      "give the remainder of two numbers; calculate a mod b", "the remainder; modulo",
      cases=lambda n: [((7, 3), 1), ((6, 3), 0)], call="7, 3", gives="1"),
    T("power", "a, b", "return a ** b",
      "raise a to the power of b; compute a power; return a to the power b; "
      "calculate the power of two numbers; raise one number to another", "the power of two numbers",
      cases=lambda n: [((2, 3), 8), ((5, 1), 5)], call="2, 3", gives="8"),
    T("square", "x", "return x * x",
      "square a number; return the square of a number; compute x squared; "
      "multiply a number by itself; give the square of x", "the square of a number; squaring",
      cases=lambda n: [((3,), 9), ((-2,), 4)], call="3", gives="9"),
    T("cube", "x", "return x * x * x",
      "cube a number; return the cube of a number; compute x cubed; give the cube of x",
      "the cube of a number", cases=lambda n: [((2,), 8), ((-1,), -1)], call="2", gives="8"),
    T("double", "x", "return x * 2",
      "double a number; return twice a number; double x; give the double of a number; "
      "compute two times x", "doubling a number; the double of a number",
      cases=lambda n: [((4,), 8), ((0,), 0)], call="4", gives="8"),
    T("half", "x", "return x / 2",
      "halve a number; return half of a number; divide a number by two; give half of x",
      "half of a number", cases=lambda n: [((4,), 2), ((3,), 1.5)], call="4", gives="2.0"),
    T("negate", "x", "return -x",
      "negate a number; return the negative of a number; flip the sign of a number; "
      "change the sign of x", "the negative of a number",
      cases=lambda n: [((4,), -4), ((-3,), 3)], call="4", gives="-4"),
    T("absolute", "x", "return abs(x)",
      "return the absolute value of a number; compute the absolute value; make a number positive; "
      "give the absolute value of x", "the absolute value",
      cases=lambda n: [((-4,), 4), ((3,), 3)], call="-4", gives="4"),
    T("is_even", "n", "return n % 2 == 0",
      "check if a number is even; test whether a number is even; return True if a number is even; "
      "tell if n is even; see if a number is even; say whether a number is even; "
      "decide if a number is even; detect even numbers",
      "checking even numbers; an even number check",
      cases=lambda n: [((4,), True), ((3,), False)], call="4", gives="True"),
    T("is_odd", "n", "return n % 2 == 1",
      "check if a number is odd; test whether a number is odd; return True if a number is odd; "
      "tell if n is odd; see if a number is odd; say whether a number is odd; "
      "decide if a number is odd; detect odd numbers", "checking odd numbers; an odd number check",
      cases=lambda n: [((4,), False), ((3,), True)], call="3", gives="True"),
    T("is_positive", "n", "return n > 0",
      "check if a number is positive; test whether a number is positive; tell if n is positive; "
      "return True if a number is greater than zero; see if a number is positive",
      "checking positive numbers", cases=lambda n: [((4,), True), ((-3,), False)],
      call="4", gives="True"),
    T("is_negative", "n", "return n < 0",
      "check if a number is negative; test whether a number is negative; tell if n is negative; "
      "return True if a number is less than zero; see if a number is negative",
      "checking negative numbers", cases=lambda n: [((4,), False), ((-3,), True)],
      call="-3", gives="True"),
    T("is_divisible", "x", "return x % {n} == 0",
      "check if a number is divisible by {n}; test whether a number is a multiple of {n}; "
      "return True if x is divisible by {n}; tell if a number can be divided by {n}; "
      "see if {n} divides a number", "checking divisibility by {n}", constants=N[1:],
      cases=lambda n: [((n * 2,), True), ((n + 1,), False)], call="12", gives="True or False"),
    T("add_number", "x", "return x + {n}",
      "add {n} to a number; return a number plus {n}; increase a number by {n}; compute x plus {n}; "
      "take a number and add {n}; give back x + {n}", "adding {n} to a number", constants=N,
      cases=lambda n: [((1,), 1 + n), ((10,), 10 + n)]),
    T("subtract_number", "x", "return x - {n}",
      "subtract {n} from a number; return a number minus {n}; decrease a number by {n}; "
      "compute x minus {n}; take {n} away from a number", "subtracting {n} from a number",
      constants=N, cases=lambda n: [((50,), 50 - n), ((10,), 10 - n)]),
    T("multiply_number", "x", "return x * {n}",
      "multiply a number by {n}; return a number times {n}; compute x times {n}; "
      "return {n} times a number; scale a number by {n}", "multiplying a number by {n}",
      constants=N[1:], cases=lambda n: [((2,), 2 * n), ((3,), 3 * n)]),
    T("divide_number", "x", "return x / {n}",
      "divide a number by {n}; return a number divided by {n}; compute x divided by {n}; "
      "split a number by {n}", "dividing a number by {n}", constants=N[1:],
      cases=lambda n: [((2 * n,), 2), ((n,), 1)]),
    T("is_greater", "x", "return x > {n}",
      "check if a number is greater than {n}; test whether a number is bigger than {n}; "
      "return True if x is more than {n}; tell if a number is above {n}; see if x is larger than {n}",
      "checking numbers above {n}", constants=N,
      cases=lambda n: [((n + 1,), True), ((n,), False)]),
    T("is_smaller", "x", "return x < {n}",
      "check if a number is smaller than {n}; test whether a number is less than {n}; "
      "return True if x is under {n}; tell if a number is below {n}; see if x is lower than {n}",
      "checking numbers below {n}", constants=N,
      cases=lambda n: [((n - 1,), True), ((n,), False)]),
    T("maximum", "a, b", "return max(a, b)",
      "return the larger of two numbers; find the maximum of two numbers; give the bigger number; "
      "return the greater of two numbers; pick the larger number; compare two numbers and return "
      "the bigger one", "the maximum of two numbers; the larger of two numbers",
      cases=lambda n: [((2, 3), 3), ((5, 1), 5)], call="2, 3", gives="3"),
    T("minimum", "a, b", "return min(a, b)",
      "return the smaller of two numbers; find the minimum of two numbers; give the smaller number; "
      "return the lesser of two numbers; pick the smaller number; compare two numbers and return "
      "the smaller one", "the minimum of two numbers; the smaller of two numbers",
      cases=lambda n: [((2, 3), 2), ((5, 1), 1)], call="2, 3", gives="2"),
    T("average", "a, b", "return (a + b) / 2",
      "return the average of two numbers; compute the mean of two numbers; average two numbers; "
      "find the middle of two numbers", "the average of two numbers; the mean of two numbers",
      cases=lambda n: [((2, 4), 3), ((5, 0), 2.5)], call="2, 4", gives="3.0"),
    T("is_equal", "a, b", "return a == b",
      "check if two values are equal; test whether two numbers are the same; compare two values; "
      "return True if a equals b; tell if two things are equal", "checking equality",
      cases=lambda n: [((2, 2), True), ((5, 1), False)], call="2, 2", gives="True"),
    T("factorial", "n", "result = 1\nfor i in range(1, n + 1):\n    result *= i\nreturn result",
      "compute the factorial of a number; return the factorial of n; calculate n factorial; "
      "find the factorial; calculate a factorial; get the factorial of a number",
      "the factorial; factorial; factorials; n factorial",
      cases=lambda n: [((5,), 120), ((0,), 1)], call="5", gives="120"),
    T("fibonacci", "n", "a, b = 0, 1\nfor i in range(n):\n    a, b = b, a + b\nreturn a",
      "return the nth Fibonacci number; compute Fibonacci numbers; calculate the n-th fibonacci; "
      "find the nth fibonacci number; get a fibonacci number",
      "the Fibonacci numbers; fibonacci; the fibonacci sequence; the nth fibonacci number",
      cases=lambda n: [((0,), 0), ((1,), 1), ((10,), 55)], call="10", gives="55"),
    T("is_prime", "n",
      "if n < 2:\n    return False\nfor i in range(2, n):\n    if n % i == 0:\n"
      "        return False\nreturn True",
      "check if a number is prime; test whether a number is a prime; tell if n is prime; "
      "return True if a number is prime; see if a number is a prime number; decide if n is prime; "
      "detect primes", "checking primes; a prime check; prime numbers; testing for primes",
      cases=lambda n: [((7,), True), ((9,), False), ((1,), False), ((2,), True)],
      call="7", gives="True"),
    T("sum_to", "n", "total = 0\nfor i in range(1, n + 1):\n    total += i\nreturn total",
      "sum the numbers from 1 to n; add all numbers from 1 to n; add up the first n numbers; "
      "return the sum of 1 to n; compute the sum of the first n numbers",
      "the sum of the numbers 1 to n", cases=lambda n: [((4,), 10), ((1,), 1)],
      call="4", gives="10"),
    T("print_numbers", "", "for i in range(1, {n} + 1):\n    print(i)",
      "print the numbers from 1 to {n}; print 1 to {n}; show the numbers 1 to {n}; count to {n}; "
      "write the numbers from 1 up to {n}; loop from 1 to {n} and print", "printing 1 to {n}",
      constants=N[1:], cases=lambda n: [((), "".join(f"{i}\n" for i in range(1, n + 1)))]),
    T("count_down", "", "for i in range({n}, 0, -1):\n    print(i)",
      "count down from {n}; print the numbers from {n} down to 1; print a countdown from {n}; "
      "count backwards from {n}; show a countdown from {n} to 1", "a countdown from {n}",
      constants=N[1:], cases=lambda n: [((), "".join(f"{i}\n" for i in range(n, 0, -1)))]),
    T("say", "", "print(\"{n}\")",
      "print {n}; print the word {n}; say {n}; show the text {n}; output {n}; write {n} to the screen",
      "printing {n}", constants=WORDS, cases=lambda n: [((), f"{n}\n")]),
    T("greet", "name", "return \"Hello, \" + name",
      "greet a person by name; say hello to a name; return a greeting for a name; greet someone; "
      "take a name and return hello", "a greeting; greeting a person",
      cases=lambda n: [(("Mia",), "Hello, Mia")], call="\"Mia\"", gives="Hello, Mia"),
    T("sum_list", "items", "return sum(items)",
      "sum a list; add all numbers in a list; return the sum of a list; add up a list of numbers; "
      "compute the total of a list; sum all the elements of a list; total the items of a list",
      "the sum of a list; summing a list; the total of a list",
      cases=lambda n: [(([1, 2, 3],), 6), (([],), 0)], call="[1, 2, 3]", gives="6"),
    T("average_list", "items", "return sum(items) / len(items)",
      "compute the average of a list; return the mean of a list; average a list of numbers; "
      "calculate the mean of the numbers in a list; find the average of a list",
      "the average of a list; the mean of a list; averaging a list",
      cases=lambda n: [(([1, 2, 3],), 2)], call="[1, 2, 3]", gives="2.0"),
    T("largest", "items", "return max(items)",
      "find the largest number in a list; return the maximum of a list; get the biggest element of a "
      "list; find the max of a list; give the highest value in a list; return the largest item",
      "the maximum of a list; the largest element of a list; the biggest number in a list",
      cases=lambda n: [(([1, 5, 3],), 5)], call="[1, 5, 3]", gives="5"),
    T("smallest", "items", "return min(items)",
      "find the smallest number in a list; return the minimum of a list; get the smallest element of "
      "a list; find the min of a list; give the lowest value in a list; return the smallest item",
      "the minimum of a list; the smallest element of a list; the lowest number in a list",
      cases=lambda n: [(([4, 1, 3],), 1)], call="[4, 1, 3]", gives="1"),
    T("length", "items", "return len(items)",
      "return the length of a list; count the items in a list; get the size of a list; "
      "find how many elements a list has; give the number of items in a list",
      "the length of a list; the number of items in a list",
      cases=lambda n: [(([4, 1, 3],), 3), (([],), 0)], call="[4, 1, 3]", gives="3"),
    T("first", "items", "return items[0]",
      "return the first item of a list; get the first element of a list; give the first element; "
      "find the first item in a list", "the first element of a list",
      cases=lambda n: [(([4, 1, 3],), 4)], call="[4, 1, 3]", gives="4"),
    T("last", "items", "return items[-1]",
      "return the last item of a list; get the last element of a list; give the last element; "
      "find the last item in a list", "the last element of a list",
      cases=lambda n: [(([4, 1, 3],), 3)], call="[4, 1, 3]", gives="3"),
    T("reverse_list", "items", "return items[::-1]",
      "reverse a list; return a list in reverse order; turn a list around; flip a list; "
      "give back a list backwards; reverse the order of a list", "reversing a list",
      cases=lambda n: [(([4, 1, 3],), [3, 1, 4])], call="[4, 1, 3]", gives="[3, 1, 4]"),
    T("sort_list", "items", "return sorted(items)",
      "sort a list; return a sorted list; sort numbers; put a list in order; order a list; "
      "sort a list of numbers from small to large; sort a list in ascending order",
      "sorting a list; sorting numbers; a sorted list",
      cases=lambda n: [(([4, 1, 3],), [1, 3, 4])], call="[4, 1, 3]", gives="[1, 3, 4]"),
    T("sort_down", "items", "return sorted(items, reverse=True)",
      "sort a list in descending order; sort a list from large to small; sort a list downwards; "
      "return a list sorted from high to low; sort numbers from big to small",
      "sorting a list in descending order", cases=lambda n: [(([4, 1, 3],), [4, 3, 1])],
      call="[4, 1, 3]", gives="[4, 3, 1]"),
    T("unique", "items", "return sorted(set(items))",
      "remove duplicates from a list; return the unique items of a list; drop repeated items; "
      "get rid of duplicates; give the distinct elements of a list",
      "removing duplicates; the unique items of a list",
      cases=lambda n: [(([2, 1, 2],), [1, 2])], call="[2, 1, 2]", gives="[1, 2]"),
    T("contains", "items, x", "return x in items",
      "check if a list contains a value; test whether x is in a list; tell if an item is in a list; "
      "see if a list has an element; return True if a list contains x", "finding x in a list",
      cases=lambda n: [(([1, 2], 2), True), (([1], 3), False)], call="[1, 2], 2", gives="True"),
    T("count_item", "items, x", "return items.count(x)",
      "count how often x is in a list; count an item in a list; return how many times a value "
      "appears in a list; count the occurrences of x in a list", "counting an item in a list",
      cases=lambda n: [(([1, 2, 2], 2), 2)], call="[1, 2, 2], 2", gives="2"),
    T("even_numbers", "items", "return [x for x in items if x % 2 == 0]",
      "return the even numbers of a list; keep only even numbers; filter the even numbers from a "
      "list; find all even numbers in a list; get the evens of a list",
      "the even numbers of a list; filtering even numbers",
      cases=lambda n: [(([1, 2, 4],), [2, 4])], call="[1, 2, 4]", gives="[2, 4]"),
    T("odd_numbers", "items", "return [x for x in items if x % 2 == 1]",
      "return the odd numbers of a list; keep only odd numbers; filter the odd numbers from a list; "
      "find all odd numbers in a list; get the odds of a list",
      "the odd numbers of a list; filtering odd numbers",
      cases=lambda n: [(([1, 2, 3],), [1, 3])], call="[1, 2, 3]", gives="[1, 3]"),
    T("above", "items", "return [x for x in items if x > {n}]",
      "return the numbers in a list greater than {n}; keep only numbers above {n}; filter the "
      "numbers bigger than {n} from a list; find all items larger than {n} in a list",
      "the numbers above {n} in a list", constants=N,
      cases=lambda n: [(([n, n + 1, 0],), [n + 1])]),
    T("below", "items", "return [x for x in items if x < {n}]",
      "return the numbers in a list less than {n}; keep only numbers below {n}; filter the "
      "numbers smaller than {n} from a list; find all items lower than {n} in a list",
      "the numbers below {n} in a list", constants=N,
      cases=lambda n: [(([n, n + 1, 0],), [0])]),
    T("square_all", "items", "return [x * x for x in items]",
      "square every number in a list; return the squares of a list; square all items of a list; "
      "map a list to its squares", "the squares of a list",
      cases=lambda n: [(([1, 3],), [1, 9])], call="[1, 3]", gives="[1, 9]"),
    T("double_all", "items", "return [x * 2 for x in items]",
      "double every number in a list; double all items of a list; return a list with every number "
      "doubled; multiply all numbers in a list by two", "doubling a list",
      cases=lambda n: [(([1, 3],), [2, 6])], call="[1, 3]", gives="[2, 6]"),
    T("add_all", "items", "return [x + {n} for x in items]",
      "add {n} to every number in a list; increase all items of a list by {n}; "
      "return a list with {n} added to each number; add {n} to each element of a list",
      "adding {n} to a list", constants=N, cases=lambda n: [(([1, 3],), [1 + n, 3 + n])]),
    T("reverse", "text", "return text[::-1]",
      "reverse a string; return a string backwards; reverse a text; flip a string; turn a word "
      "around; reverse the letters of a word; write a string backwards; spell a word backwards",
      "reversing a string; string reversal; a reversed string",
      cases=lambda n: [(("abc",), "cba")], call="\"abc\"", gives="cba"),
    T("upper", "text", "return text.upper()",
      "convert a string to upper case; make a string uppercase; turn a text into capital letters; "
      "uppercase a string; put a word in capitals", "upper case; uppercasing a string",
      cases=lambda n: [(("abc",), "ABC")], call="\"abc\"", gives="ABC"),
    T("lower", "text", "return text.lower()",
      "convert a string to lower case; make a string lowercase; turn a text into small letters; "
      "lowercase a string; put a word in small letters", "lower case; lowercasing a string",
      cases=lambda n: [(("ABC",), "abc")], call="\"ABC\"", gives="abc"),
    T("count_letters", "text", "return len(text)",
      "return the length of a string; count the characters in a string; count the letters of a word; "
      "find how long a text is; give the number of characters in a string",
      "the length of a string; the number of letters in a word",
      cases=lambda n: [(("abc",), 3), (("",), 0)], call="\"abc\"", gives="3"),
    T("count_letter", "text", "return text.count(\"{n}\")",
      "count the letter {n} in a string; return how often {n} is in a text; "
      "count how many times {n} appears in a word; count every {n} in a string",
      "counting the letter {n}", constants=LETTERS,
      cases=lambda n: [((f"{n}zz{n}",), 2), (("q",), 0)]),
    T("starts_with", "text", "return text.startswith(\"{n}\")",
      "check if a string starts with {n}; test whether a text begins with {n}; "
      "tell if a word starts with the letter {n}; see if a string begins with {n}",
      "checking that a text starts with {n}", constants=LETTERS,
      cases=lambda n: [((f"{n}zz",), True), (("qq",), False)]),
    T("ends_with", "text", "return text.endswith(\"{n}\")",
      "check if a string ends with {n}; test whether a text ends in {n}; "
      "tell if a word ends with the letter {n}; see if a string finishes with {n}",
      "checking that a text ends with {n}", constants=LETTERS,
      cases=lambda n: [((f"zz{n}",), True), (("qq",), False)]),
    T("is_palindrome", "text", "return text == text[::-1]",
      "check if a string is a palindrome; test whether a word is a palindrome; tell if a text reads "
      "the same backwards; see if a word is a palindrome; detect palindromes",
      "checking palindromes; a palindrome check; palindromes",
      cases=lambda n: [(("anna",), True), (("abc",), False)], call="\"anna\"", gives="True"),
    T("count_vowels", "text", "return sum(1 for c in text if c in \"aeiou\")",
      "count the vowels in a string; return the number of vowels; find how many vowels a word has; "
      "count vowels in a text; count all vowels of a word",
      "the number of vowels; counting vowels; a vowel counter",
      cases=lambda n: [(("banana",), 3), (("xyz",), 0)], call="\"banana\"", gives="3"),
    T("count_words", "text", "return len(text.split())",
      "count the words in a text; return the number of words in a sentence; "
      "count words; find how many words a string has; tell how many words are in a text",
      "the number of words; counting words; a word counter",
      cases=lambda n: [(("a b c",), 3)], call="\"a b c\"", gives="3"),
    T("split_words", "text", "return text.split()",
      "split a text into words; return the words of a sentence; break a string into words; "
      "turn a sentence into a list of words", "splitting a text into words",
      cases=lambda n: [(("a b c",), ["a", "b", "c"])], call="\"a b c\"",
      gives="[\"a\", \"b\", \"c\"]"),
    T("join_words", "words", "return \" \".join(words)",
      "join a list of words; join words with spaces; turn a list of words into a sentence; "
      "combine words into one string", "joining words",
      cases=lambda n: [((["a", "b"],), "a b")], call="[\"a\", \"b\"]", gives="a b"),
    T("first_letter", "text", "return text[0]",
      "return the first letter of a word; get the first character of a string; "
      "give the first letter of a text", "the first letter of a word",
      cases=lambda n: [(("abc",), "a")], call="\"abc\"", gives="a"),
    T("last_letter", "text", "return text[-1]",
      "return the last letter of a word; get the last character of a string; "
      "give the last letter of a text", "the last letter of a word",
      cases=lambda n: [(("abc",), "c")], call="\"abc\"", gives="c"),
    T("repeat", "text", "return text * {n}",
      "repeat a string {n} times; return a text {n} times; write a word {n} times in a row; "
      "repeat a word {n} times", "repeating a string {n} times", constants=N,
      cases=lambda n: [(("ab",), "ab" * n)]),
    T("strip_spaces", "text", "return text.replace(\" \", \"\")",
      "remove the spaces from a string; delete all spaces in a text; strip spaces out of a string; "
      "take the spaces out of a sentence", "removing spaces",
      cases=lambda n: [(("a b c",), "abc")], call="\"a b c\"", gives="abc"),
    T("to_fahrenheit", "c", "return c * 9 / 5 + 32",
      "convert Celsius to Fahrenheit; turn Celsius into Fahrenheit; change degrees Celsius to "
      "Fahrenheit; return the temperature in Fahrenheit", "Celsius to Fahrenheit",
      cases=lambda n: [((0,), 32), ((100,), 212)], call="100", gives="212.0"),
    T("to_celsius", "f", "return (f - 32) * 5 / 9",
      "convert Fahrenheit to Celsius; turn Fahrenheit into Celsius; change degrees Fahrenheit to "
      "Celsius; return the temperature in Celsius", "Fahrenheit to Celsius",
      cases=lambda n: [((32,), 0), ((212,), 100)], call="212", gives="100.0"),
    T("to_minutes", "hours", "return hours * 60",
      "convert hours to minutes; turn hours into minutes; return the minutes in some hours",
      "hours to minutes", cases=lambda n: [((2,), 120)], call="2", gives="120"),
    T("area", "width, height", "return width * height",
      "compute the area of a rectangle; return the area of a rectangle; calculate the area of a "
      "rectangle; find the area from width and height", "the area of a rectangle; a rectangle area",
      cases=lambda n: [((2, 3), 6)], call="2, 3", gives="6"),
    T("perimeter", "width, height", "return 2 * (width + height)",
      "compute the perimeter of a rectangle; return the perimeter of a rectangle; "
      "calculate the perimeter of a rectangle", "the perimeter of a rectangle",
      cases=lambda n: [((2, 3), 10)], call="2, 3", gives="10"),
    T("circle_area", "r", "return 3.14159 * r * r",
      "compute the area of a circle; return the area of a circle; calculate a circle's area; "
      "find the area of a circle from its radius", "the area of a circle; a circle area",
      cases=lambda n: [((1,), 3.14159)], call="1", gives="3.14159"),
    T("swap", "a, b", "return b, a",
      "swap two values; swap two numbers; exchange two values; return two values in swapped order",
      "swapping two values", cases=lambda n: [((1, 2), (2, 1))], call="1, 2", gives="(2, 1)"),
]  # fmt: skip
BY_NAME = {task.name: task for task in TASKS}

THIRD = [
    "Write a Python function that {s}.", "Write a function that {s}.", "a function that {s}",
    "python function that {s}", "I need a function that {s}", "Give me a function that {s}.",
    "Make a function that {s}.", "show me python code that {s}", "code that {s}",
    "Create a Python function which {s}.", "Define a function that {s}.", "function that {s}",
    "write python code which {s}", "Implement a function that {s}.", "a short program that {s}",
    "I want a python function that {s}", "write me a method that {s}", "some code that {s}",
    "give me a def that {s}", "a helper that {s}", "write a script that {s}",
]  # fmt: skip
BASE = [
    "Write a function to {b}.", "Python function to {b}", "How do I {b} in Python?",
    "how to {b} in python", "{b} in python", "code to {b}", "Write Python code to {b}.",
    "Show me how to {b} in Python.", "function to {b}", "I want to {b} in python",
    "a python way to {b}", "what is the code to {b}?", "How can I {b} with Python?",
    "in python, {b}", "python: {b}", "a function to {b}", "define a function to {b}",
    "program to {b}", "write some python to {b}", "how would you {b} in code?",
    "using python, {b}", "a snippet to {b}", "implement code to {b}",
]  # fmt: skip
NOUN = [
    "Write a function for {x}.", "python code for {x}", "python function for {x}", "{x} in python",
    "code for {x}", "Give me a function for {x}.", "{x} function", "{x} python",
    "Show me {x} in Python.", "function: {x}", "a program for {x}", "how does {x} work in python",
    "implement {x}", "write {x} as a function", "{x} as python code", "def for {x}",
]  # fmt: skip
VERB = ["write", "give me", "I need", "show me", "create", "make", "I want", "build", "code", "define",
        "help me with", "do you have", "we need", "generate", "please provide", "I look for"]  # fmt: skip
WHICH = ["a", "a", "some", "one", "a small", "a simple", "a short", "the", "an easy", "a little"]
LANG = ["python", "Python", "", "py", "Python 3"]
SORT = ["function", "function", "code", "def", "method", "script", "program", "snippet", "helper"]
TO = ["that {s}", "which {s}", "to {b}", "so that I can {b}", ", it should {b}", ". It must {b}",
      "able to {b}", "with which I can {b}", ". It {s}", "and it {s}", ": {b}", "that can {b}"]  # fmt: skip


def built(rng: random.Random) -> str:
    """A way to ask for code put together from parts; {s} or {b} stands for the task."""
    parts = [pick(rng, VERB), pick(rng, WHICH), pick(rng, LANG), pick(rng, SORT), pick(rng, TO)]
    return " ".join(part for part in parts if part).replace(" ,", ",").replace(" .", ".").replace(
        " :", ":")  # fmt: skip


CALLED = [" called {f}", " named {f}", " with the name {f}", ", call it {f}", ", name it {f}",
          " and call it {f}"]  # fmt: skip
_A = "my new fast small big old main next best help do make get run try test calc red blue".split()
_B = "it func task job step value thing tool work item code data number text list part plan".split()


def identifier(rng: random.Random) -> str:
    """An invented function name."""
    name = pick(rng, _A) + "_" + pick(rng, _B)
    if rng.random() < 0.25:
        return pick(rng, "foo bar baz f g h solve compute process helper run calc go test".split())
    return name if rng.random() < 0.8 else name.replace("_", "")


def third(base: str) -> str:
    """'add two numbers' to 'adds two numbers'."""
    verb, _, rest = base.partition(" ")
    if verb.endswith(("sh", "ch", "s", "x")):
        verb += "es"
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        verb = verb[:-1] + "ies"
    else:
        verb += "s"
    return f"{verb} {rest}"


def solution(task: Task, constant: object = None, name: str = "") -> str:
    """The function itself."""
    lines = task.body.replace("{n}", str(constant)).split("\n")
    return "\n".join([f"def {name or task.name}({task.params}):", *("    " + x for x in lines)])


def answer(task: Task, constant: object = None, name: str = "") -> str:
    """One sentence and the function."""
    says = third(task.says[0]).replace("{n}", str(constant))
    return f"Here is a function that {says}:\n\n```python\n{solution(task, constant, name)}\n```"


def request(rng: random.Random, test: bool = False) -> tuple[Turn, Task, Any, str]:
    """A request, its answer, and what it was drawn from."""
    while True:
        task = rng.choice(TASKS)
        constant = rng.choice(task.constants) if task.constants else None
        named = identifier(rng) if rng.random() < 0.2 else ""
        draw = rng.random()
        if draw < 0.25 and not test:
            form, says = built(rng), pick(rng, task.says)
            text = form.format(s=third(says), b=says)
        elif draw < 0.42:
            form, says = pick(rng, THIRD), pick(rng, task.says)
            text = form.format(s=third(says))
        elif draw < 0.8 or not task.nouns:
            form, says = pick(rng, BASE), pick(rng, task.says)
            text = form.format(b=says)
        else:
            form, says = pick(rng, NOUN), pick(rng, task.nouns)
            text = form.format(x=says)
        # Held out: constants with their task, names with their task, or a wording as a whole.
        slot = constant if constant is not None else named or (form, says)
        if held_out("code", task.name, slot) == test:
            break
    text = text.replace("{n}", str(constant))
    keep: tuple[str, ...] = (str(constant), named)
    if constant is not None and isinstance(constant, str) and rng.random() < 0.4:
        head, found, tail = text.rpartition(f" {constant}")
        if found and not tail[:1].isalpha():
            text = f"{head} '{constant}'{tail}"
        keep = (*keep, f"'{constant}'")
    if named:
        end = text[-1] if text[-1] in ".?" else ""
        text = text.rstrip(".?") + pick(rng, CALLED).format(f=named) + end
    return Turn(typed(rng, cap(text), keep=keep, order=True), answer(task, constant, named)), (
        task), constant, named  # fmt: skip


def function(rng: random.Random, test: bool = False) -> Turn:
    """One function."""
    return request(rng, test)[0]


def follow(rng: random.Random) -> list[Turn]:
    """A function, then its renaming, an example, or another one."""
    first, task, constant, _ = request(rng)
    if rng.random() < 0.5 or not task.call or constant is not None:
        named = identifier(rng)
        ask = pick(rng, ["Call it {f}.", "now call it {f}", "rename it to {f}", "name it {f} instead",
                         "Rename the function to {f}.", "please use the name {f}", "call it {f} please",
                         "change the name to {f}"])  # fmt: skip
        said = f"Now it is called {named}:\n\n```python\n{solution(task, constant, named)}\n```"
        return [first, Turn(typed(rng, ask.format(f=named), keep=(named,)), said)]
    code = first.answer.split("def ")[1].split("(")[0]
    ask = pick(
        rng,
        [
            "Give me an example.",
            "how do I use it?",
            "show an example",
            "example?",
            "How do I call it?",
            "what does it return?",
            "can you show how to use it",
        ],
    )
    said = f"For example, `{code}({task.call})` gives `{task.gives}`."
    return [first, Turn(typed(rng, cap(ask)), said)]
