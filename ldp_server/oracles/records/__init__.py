"""The oracles of the mechanisms for records, and tables of fields out of what the devices were asked.

sampled_attribute, sampled_table, averaged_table, every_field, sampled_grid are oracles, each of the mechanism of its
name. The others work on what those have counted:

state      counts of the reports about each of several tables
parts      what one drawn table says about the effects of its fields, and what one report about it adds to a row
pooled     a table that is asked for, from all drawn tables that share fields with it
sources    what the counts of a drawn table say about an asked table whose fields it all has
direct     an asked table from such drawn tables alone: whole records, and tables too large to be pooled
view       an asked table as an oracle: estimates of its cells, of slices and of sums, with errors and intervals
products   an asked table, where every device answers about all fields on their own
averages   the average of a number in each cell, from how many users are rounded down and up there
together   all tables of a question made possible: moved towards simpler ones, in agreement where they overlap
mixture    the law of a sum of reports about several tables, inverted to intervals
"""
